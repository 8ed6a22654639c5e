#pragma once
/// @file
/// All calls of a trace in a list.

#include <span>
#include <vector>

#include "decoder/calls/call_follower.hpp"

namespace backtrail::decoder {

class CallRebuilder final : private CallSink {
 public:
  /// Both are borrowed.
  CallRebuilder(InsnCache& insns, CodeMap& code) : follower_{insns, code, *this} {}

  /// As CallFollower.
  void feed(std::span<const Record> records) { follower_.feed(records); }
  /// The calls that are open now, outermost first; nothing after finish().
  [[nodiscard]] std::vector<CallFollower::Open> open() const { return follower_.open(); }
  /// Callers before what they call, in the order of execution. Open calls end here.
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
  std::vector<std::size_t> roots_;  ///< Calls of the stretch that nothing is known above.
};

/// The dynamic linker's search for a function begins so; it has found one if the call returns.
[[nodiscard]] bool made_by_stub(const Call& call, CodeMap& code);
/// Takes out what the dynamic linker called to find a function: it is no work of the program.
void drop_lazy_binding(std::vector<Call>& calls, CodeMap& code);

}  // namespace backtrail::decoder
