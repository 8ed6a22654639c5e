// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Keeps the program's system calls from changing the recorder's memory.

#include <cstdint>
#include <optional>
#include <utility>

#include "arch/cpu/registers.hpp"
#include "ptrace/codecache/recorder/disable_space.hpp"
#include "ptrace/codecache/recorder/memory_removal.hpp"
#include "ptrace/codecache/syscalls/own_memory.hpp"

namespace backtrail::tracee {
class Process;
class Thread;
}  // namespace backtrail::tracee

namespace backtrail::tracee::cache {

/// A call that changes mappings finds no mappings of the recorder: as far as it names them, it has
/// no effect, and the result that it would have without them. The server makes the rest of it.
/// Where the program maps something of its own over them, translated code ends, and the recorder's
/// memory is removed before the call.
class OwnMemoryCalls {
 public:
  OwnMemoryCalls(Process& process, MemoryRemoval& removal, DisableSpace disable)
      : process_{process}, removal_{removal}, disable_{std::move(disable)} {}

  enum class Found : std::uint8_t {
    kNone,  ///< The next instruction names no memory of the recorder.
    kMade,  ///< The call has been made as far as it may; the thread has returned from it.
    kWait,  ///< Other threads must leave translated code first.
  };
  /// Call before the thread executes an instruction.
  Found begin(Thread& thread);

 private:
  /// Returns the registers of the call that the thread is about to make, as a SYSCALL instruction
  /// has them; nullopt if it changes no mappings.
  std::optional<arch::cpu::UserRegs> mapping_call(Thread& thread);
  Found replace(Thread& thread, const arch::cpu::UserRegs& regs);
  Found make_around(Thread& thread, const arch::cpu::UserRegs& regs, const CallAround& call);
  /// Makes the parts of the call; returns the first errno, or 0.
  int make_parts(Thread& thread, const arch::cpu::UserRegs& regs, const CallAround& call);
  void warn(const arch::cpu::UserRegs& regs, const char* consequence);

  Process& process_;
  MemoryRemoval& removal_;
  DisableSpace disable_;
};

}  // namespace backtrail::tracee::cache
