// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// One system call that the thread makes with other arguments than the program's.

#include <optional>

#include "arch/cpu/registers.hpp"

namespace backtrail::tracee {
class Thread;
}  // namespace backtrail::tracee

namespace backtrail::tracee::cache {

class ChangedCall {
 public:
  /// Makes the thread, which is about to make a call with the registers `program`, make it with
  /// `changed`. Returns false if the registers cannot be set.
  bool begin(Thread& thread, const arch::cpu::UserRegs& program,
             const arch::cpu::UserRegs& changed);
  /// Call at the next stop: the program sees its own arguments again. Does nothing if no call was
  /// begun.
  void end(Thread& thread);
  void forget() { program_.reset(); }

  /// Returns the registers that the program must see, if its thread was about to make a call with
  /// `program` and is now stopped with `now`.
  [[nodiscard]] static arch::cpu::UserRegs restored(const arch::cpu::UserRegs& program,
                                                    arch::cpu::UserRegs now);

 private:
  std::optional<arch::cpu::UserRegs> program_;  ///< The program's registers, before the call.
};

}  // namespace backtrail::tracee::cache
