// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Registers and memory of a crash file's threads, for the values in a report.

#include <memory>

#include "arch/cpu/gdb_registers.hpp"
#include "decoder/corefile/core_file.hpp"
#include "decoder/report/value_source.hpp"
#include "ptrace/core/program_memory.hpp"
#include "server/target/core_end.hpp"
#include "server/target/core_traces.hpp"
#include "server/target/program_past.hpp"
#include "server/target/register_slots.hpp"

namespace backtrail::server {

class PastValues;

class CrashValues final : public decoder::ValueSource {
 public:
  /// Both are borrowed.
  CrashValues(const decoder::CoreFile& core, tracee::ProgramMemory& memory);

  std::unique_ptr<decoder::FrameState> at_end(std::uint32_t tid) override;
  std::unique_ptr<decoder::FrameState> in_past(std::uint32_t tid, const Past& place) override;
  std::unique_ptr<decoder::FrameState> after_return(std::uint32_t tid,
                                                    std::uint64_t newer) override;
  /// Returns a thread's values at places of its past; null if there are none.
  PastValues* of(std::uint32_t tid);

 private:
  const decoder::CoreFile& core_;
  tracee::ProgramMemory& memory_;
  arch::cpu::GdbRegisterSet registers_;
  RegisterSlots slots_{registers_};
  CoreTraces traces_;
  CoreEnd end_;
  PastStops no_stops_;
  ProgramPast past_;
};

}  // namespace backtrail::server
