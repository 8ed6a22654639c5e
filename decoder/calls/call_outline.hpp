// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// All calls of a trace in the order of execution, callers first, without a list in memory.
///
/// Some facts show only later: the caller of the trace's first function, the target of a stub,
/// whether the dynamic linker's search returned. So the trace is followed twice. In the first pass
/// a CallOutline records these facts; in the second pass OrderedCalls reports the calls in list
/// order (see rebuild_calls).

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>

#include "decoder/calls/call.hpp"

namespace backtrail::decoder {

/// First pass. Takes about a byte for each stretch and a bit for each call by a stub, plus rare
/// cases.
class CallOutline final : public CallSink {
 public:
  /// Borrows `code`.
  explicit CallOutline(CodeMap& code) : code_{code} {}

  void stretch() override { stretches_.push_back(late_.size()); }
  void begin(const Call& call) override;
  void rename(const Call& call) override;
  void end(const Call& call) override;
  void begin_around(const Call& call) override;

 private:
  friend class OrderedCalls;
  static constexpr std::size_t kNone = ~std::size_t{0};

  struct Open {
    std::uint64_t number = 0;
    std::size_t late = kNone;     ///< Index in late_; kNone if it did not show late.
    std::size_t by_stub = kNone;  ///< Index in came_back_; kNone if no stub made the call.
    bool has_calls = false;       ///< Has made calls that are not dropped.
  };

  CodeMap& code_;
  std::vector<TraceeAddr> late_;        ///< First instructions of callers that showed late.
  std::vector<std::size_t> stretches_;  ///< Size of late_ at the start of each stretch.
  std::vector<bool> came_back_;         ///< For each call by a stub, whether it returned.
  /// New first instructions, by call number, of calls renamed after they had made calls.
  std::unordered_map<std::uint64_t, TraceeAddr> renamed_;
  std::uint64_t calls_ = 0;
  std::vector<Open> open_;
};

/// Second pass, over the same records.
class OrderedCalls final : public CallSink {
 public:
  using Tell = std::function<void(const Call&)>;

  /// Borrows all arguments. Reported calls nest. `begins` receives a call as the list has it,
  /// except for end, parent and depth. Calls that the dynamic linker made to find a function are
  /// left out.
  OrderedCalls(const CallOutline& outline, CodeMap& code, const Tell& begins, const Tell& ends)
      : outline_{outline}, code_{code}, begins_{begins}, ends_{ends} {}

  void stretch() override { begins_stretch_ = true; }
  void begin(const Call& call) override;
  void rename(const Call& call) override;
  void end(const Call& call) override;
  void begin_around(const Call& call) override;

 private:
  struct Open {
    Call call;
    bool dropped = false;
  };

  void begin_stretch(std::uint64_t position);
  void tell_held();

  const CallOutline& outline_;
  CodeMap& code_;
  const Tell& begins_;
  const Tell& ends_;
  bool begins_stretch_ = false;
  std::size_t stretch_ = 0;  ///< Index of the next stretch.
  std::uint64_t calls_ = 0;
  std::size_t by_stub_ = 0;
  std::vector<Open> open_;
  /// Number of the innermost call that is not dropped and not yet reported.
  std::optional<std::uint64_t> held_;
  /// Late callers of the stretch, innermost last: reported, not yet begun.
  std::vector<Call> late_;
};

}  // namespace backtrail::decoder
