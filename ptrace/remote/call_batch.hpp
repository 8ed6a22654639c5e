#pragma once
/// @file
/// System calls that a thread makes for us one after another, with a single stop at their end.

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <vector>

#include "arch/x86/translate/emitter.hpp"
#include "ptrace/os/seccomp_filter.hpp"

namespace backtrail::tracee {

/// Code that makes the calls. It ends by an INT3; r12 is 0 then if every call returned what was
/// expected.
class CallBatch {
 public:
  /// The code will lie at `at`.
  explicit CallBatch(TraceeAddr at);

  /// A result other than `expected` ends the batch.
  void call(std::uint64_t number, std::initializer_list<std::uint64_t> arguments,
            std::uint64_t expected = 0);
  /// Stores the process's and the thread's id, as they see them, each in four bytes.
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
    TraceeAddr end;           ///< Where the thread is when it stops.
    std::vector<Call> calls;  ///< But for the ids.
    std::optional<Ids> ids;   ///< Where they are stored.
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
