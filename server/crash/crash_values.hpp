// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Registers and memory of a crash file's threads, for the values in a report.

#include <memory>

#include "arch/x86/gdb_registers.hpp"
#include "decoder/corefile/core_file.hpp"
#include "decoder/report/value_source.hpp"
#include "ptrace/core/core_memory.hpp"
#include "server/target/register_slots.hpp"

namespace backtrail::server {

class CrashValues final : public decoder::ValueSource {
 public:
  /// Both are borrowed.
  CrashValues(const decoder::CoreFile& core, tracee::CoreMemory& memory);

  std::unique_ptr<decoder::FrameState> at_end(std::uint32_t tid) override;

 private:
  const decoder::CoreFile& core_;
  tracee::CoreMemory& memory_;
  arch::x86::GdbRegisterSet registers_;
  RegisterSlots slots_{registers_};
};

}  // namespace backtrail::server
