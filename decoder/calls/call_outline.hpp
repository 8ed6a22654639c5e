#pragma once
/// @file
/// All calls of a trace in the order of execution, callers first, without a list of them.
///
/// Some things of calls show only later: who had called what the trace begins in, where a stub
/// leads to, whether the dynamic linker's search came back. So the trace is followed twice. The
/// first time a CallOutline remembers just these things, the second time OrderedCalls tells of the
/// calls as a list has them (see rebuild_calls).

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>

#include "decoder/calls/call.hpp"

namespace backtrail::decoder {

/// Of the order of a byte a stretch, a bit a call by a stub, and what is rare.
class CallOutline final : public CallSink {
 public:
  /// Borrowed.
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
    std::size_t late = kNone;     ///< Its place in late_.
    std::size_t by_stub = kNone;  ///< Its place in came_back_.
    bool has_calls = false;       ///< Made calls that stay.
  };

  CodeMap& code_;
  std::vector<TraceeAddr> late_;        ///< Callers that showed late: where they begin.
  std::vector<std::size_t> stretches_;  ///< How many of them stand before each stretch.
  std::vector<bool> came_back_;         ///< Of each call by a stub.
  /// Where calls by number begin that were renamed after they had made calls.
  std::unordered_map<std::uint64_t, TraceeAddr> renamed_;
  std::uint64_t calls_ = 0;
  std::vector<Open> open_;
};

/// The second time, over the same records.
class OrderedCalls final : public CallSink {
 public:
  using Tell = std::function<void(const Call&)>;

  /// Calls nest; what `begins` hears of a call is what the list has, but for its end, its parent
  /// and its depth. Calls that the dynamic linker made to find a function are left out. All are
  /// borrowed.
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
  std::size_t stretch_ = 0;  ///< Number of the next one.
  std::uint64_t calls_ = 0;
  std::size_t by_stub_ = 0;
  std::vector<Open> open_;
  std::optional<std::uint64_t> held_;  ///< The innermost call that stays is not told yet.
  std::vector<Call> late_;             ///< Of the stretch, the innermost last; told, not begun.
};

}  // namespace backtrail::decoder
