// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// System calls that a thread of the program makes for the server one after another, with a single
/// stop at the end.

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <vector>

#include "arch/x86/translate/emitter.hpp"
#include "ptrace/os/seccomp_filter.hpp"

namespace backtrail::tracee {

/// Builds code that makes the calls. It ends with an INT3; r12 is then 0 if every call returned the
/// expected value.
class CallBatch {
 public:
  /// `at` is the address at which the code will lie.
  explicit CallBatch(TraceeAddr at);

  /// Adds a call. A result other than `expected` ends the batch.
  void call(std::uint64_t number, std::initializer_list<std::uint64_t> arguments,
            std::uint64_t expected = 0);
  /// Stores the process id and the thread id, as the program sees them, as four bytes each.
  void store_ids(TraceeAddr process, TraceeAddr thread);

  struct Call {
    seccomp_data call;
    std::uint64_t expected;
  };
  struct Ids {
    TraceeAddr process;
    TraceeAddr thread;
  };
  struct Code {
    std::vector<std::uint8_t> bytes;
    TraceeAddr begin;
    TraceeAddr end;           ///< pc at the stop that ends the batch.
    std::vector<Call> calls;  ///< The calls, except the two that get the ids.
    std::optional<Ids> ids;   ///< Addresses at which the ids are stored.
  };
  [[nodiscard]] Code finish();

 private:
  void system_call(std::uint64_t number);

  TraceeAddr begin_;
  arch::x86::translate::Emitter emit_;
  std::vector<std::uint32_t> failures_;
  std::vector<Call> calls_;
  std::optional<Ids> ids_;
};

}  // namespace backtrail::tracee
