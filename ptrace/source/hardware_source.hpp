#pragma once
/// @file
/// The sources that let the thread run natively while the CPU records: perf-bts, perf-pt, lbr.

#include <memory>

#include "decoder/pt/pt_packet_consumer.hpp"
#include "decoder/trace/trace_hub.hpp"
#include "ptrace/perf/bts_recorder.hpp"
#include "ptrace/source/branch_source.hpp"

namespace backtrail::tracee {

class Process;

/// Where the records of a hardware source go. perf-pt has bytes for a debugger that decodes them,
/// and records where somebody listens.
struct HardwareSink {
  decoder::TraceHub& records;
  decoder::PtPacketConsumer* packets = nullptr;  ///< Of perf-pt; may be null.
};

/// Opens the source on a stopped thread and begins. Errors: kUnsupported, or what the kernel said;
/// the log has it in words, with who could change it.
[[nodiscard]] Result<std::unique_ptr<BranchSource>> make_hardware_source(
    SourceKind kind, Thread& thread, const RecorderOptions& options, const HardwareSink& sink,
    PerfKernel& kernel = system_perf_kernel());

}  // namespace backtrail::tracee
