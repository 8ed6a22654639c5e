// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A crash file as the end of its program's past.

#include "arch/cpu/gdb_registers.hpp"
#include "decoder/corefile/core_file.hpp"
#include "server/target/core_traces.hpp"
#include "server/target/past_end.hpp"

namespace backtrail::server {

class CoreEnd final : public PastEnd {
 public:
  /// All are borrowed.
  CoreEnd(const decoder::CoreFile& core, tracee::ProgramMemory& memory, const CoreTraces& traces,
          const arch::cpu::GdbRegisterSet& registers);

  std::optional<ThreadEnd> thread(tracee::ThreadId id) override;
  [[nodiscard]] tracee::ProgramMemory& memory() override { return memory_; }
  [[nodiscard]] const PastPages& pages() const override { return pages_; }
  [[nodiscard]] const arch::cpu::GdbRegisterSet& registers() const override { return registers_; }
  [[nodiscard]] std::string why_no_past(tracee::ThreadId id) const override;

 private:
  const decoder::CoreFile& core_;
  tracee::ProgramMemory& memory_;
  const CoreTraces& traces_;
  const arch::cpu::GdbRegisterSet& registers_;
  PastPages pages_;
};

}  // namespace backtrail::server
