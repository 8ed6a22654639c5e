#pragma once
/// @file
/// The sources that let the thread run natively while the CPU records: perf-bts, perf-pt, lbr.

#include <memory>

#include "decoder/pt/pt_raw_history.hpp"
#include "decoder/trace/trace_consumer.hpp"
#include "ptrace/perf/bts_recorder.hpp"
#include "ptrace/source/branch_source.hpp"

namespace backtrail::tracee {

class Process;

/// Where the records of a hardware source go: perf-pt has bytes for the debugger and no records.
struct HardwareSink {
  decoder::TraceConsumer& records;
  decoder::PtRawHistory* packets = nullptr;  ///< Needed by perf-pt.
};

/// Opens the source on a stopped thread and begins. Errors: kUnsupported, or what the kernel said;
/// the log has it in words, with who could change it.
[[nodiscard]] Result<std::unique_ptr<BranchSource>> make_hardware_source(
    SourceKind kind, Thread& thread, const RecorderOptions& options, const HardwareSink& sink,
    PerfKernel& kernel = system_perf_kernel());

}  // namespace backtrail::tracee
