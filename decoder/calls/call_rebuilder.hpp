// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Rebuilds all calls of a trace into a list.

#include <span>
#include <vector>

#include "decoder/calls/call_follower.hpp"

namespace backtrail::decoder {

class CallRebuilder final : private CallSink {
 public:
  /// Borrows all arguments; see CallFollower.
  CallRebuilder(InsnCache& insns, CodeMap& code, CodeHistory* past = nullptr)
      : follower_{insns, code, *this, past} {}

  /// See CallFollower::feed().
  void feed(std::span<const Record> records, std::uint64_t end = 0) {
    follower_.feed(records, end);
  }
  /// Returns the open calls, outermost first; empty after finish().
  [[nodiscard]] std::vector<CallFollower::Open> open() const { return follower_.open(); }
  /// Ends all open calls. Returns the calls in the order of execution, callers before callees.
  [[nodiscard]] std::vector<Call> finish();

 private:
  void stretch() override { roots_.clear(); }
  void begin(const Call& call) override;
  void rename(const Call& call) override;
  void end(const Call& call) override;
  void begin_around(const Call& call) override;

  CallFollower follower_;
  std::vector<Call> calls_;
  std::vector<std::size_t> open_;
  std::vector<std::size_t> roots_;  ///< Calls of the stretch without a known caller.
};

/// Returns true if a stub made the call, as when the dynamic linker searches for a function. The
/// search succeeded if the call returns.
[[nodiscard]] bool made_by_stub(const Call& call, CodeMap& code);
/// Removes the calls that the dynamic linker made to find a function: they are not the program's
/// work.
void drop_lazy_binding(std::vector<Call>& calls, CodeMap& code);

}  // namespace backtrail::decoder
