// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Sources for which the thread runs natively and the CPU records: perf-bts, perf-pt, lbr.

#include <memory>

#include "decoder/pt/pt_packet_consumer.hpp"
#include "decoder/trace/trace_hub.hpp"
#include "ptrace/perf/bts_recorder.hpp"
#include "ptrace/source/branch_source.hpp"

namespace backtrail::tracee {

class Process;

/// Destination of a hardware source's records. perf-pt delivers packets to a debugger that decodes
/// them itself, and records if the hub has consumers.
struct HardwareSink {
  decoder::TraceHub& records;
  decoder::PtPacketConsumer* packets = nullptr;  ///< For perf-pt; may be null.
};

/// Opens the source on a stopped thread and begins. Errors: kUnsupported, or the kernel's; the
/// server's log explains them and says how to change that.
[[nodiscard]] Result<std::unique_ptr<BranchSource>> make_hardware_source(
    SourceKind kind, Thread& thread, const RecorderOptions& options, const HardwareSink& sink,
    PerfKernel& kernel = system_perf_kernel());

}  // namespace backtrail::tracee
