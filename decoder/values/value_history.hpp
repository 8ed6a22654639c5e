// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Past values of a whole trace, recovered window by window from its end, as far back as needed.

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "decoder/values/model_cache.hpp"
#include "decoder/values/solved_window.hpp"

namespace backtrail::decoder::values {

/// Limits on how much is solved at once and kept.
struct HistoryLimits {
  std::size_t window_steps = 40'000;
  std::size_t most_windows = 25;
  FrameLinks links = FrameLinks::kNone;
};

class ValueHistory {
 public:
  /// Returns the steps [begin, end) of the trace and their events, with `before` counted from
  /// `begin`.
  using Fetch = std::function<Window(std::size_t begin, std::size_t end)>;

  /// `steps` is the length of the trace. `code` and `end` are borrowed and must outlive this.
  /// `components` are those of the CPU's XSAVE area (XCR0).
  ValueHistory(std::size_t steps, Fetch fetch, CodeReader& code, EndState& end,
               std::uint64_t components = cpu::kAnyComponents, HistoryLimits limits = {});
  ~ValueHistory();
  ValueHistory(const ValueHistory&) = delete;
  ValueHistory& operator=(const ValueHistory&) = delete;

  using Clock = std::chrono::steady_clock;
  /// Until this is called again no further part of the past is solved after `deadline`; nullopt: at
  /// any time. What is not solved is unknown.
  void set_deadline(std::optional<Clock::time_point> deadline) { deadline_ = deadline; }
  /// Returns a register before step `position`; position == steps is the end.
  [[nodiscard]] Known reg(std::size_t position, Slot slot);
  /// As reg(), of all registers.
  [[nodiscard]] Registers registers(std::size_t position);
  /// Reads `out.size()` bytes from `address` on, before step `position`.
  /// @param known Set to 0xff for each known byte, else 0; as long as `out`.
  void memory(std::size_t position, TraceeAddr address, std::span<std::uint8_t> out,
              std::span<std::uint8_t> known);
  /// Returns the newest write to [address, address + bytes) before step `position`; nullopt if
  /// there is none from horizon() on.
  [[nodiscard]] std::optional<LastWrite> last_write(std::size_t position, TraceeAddr address,
                                                    std::uint64_t bytes);
  /// Returns the address of an access of step `step`, by its number in the instruction's model;
  /// nullopt if unknown.
  [[nodiscard]] std::optional<TraceeAddr> access_address(std::size_t step, std::uint32_t number);
  /// Returns an executed step; nullopt before horizon().
  [[nodiscard]] std::optional<Step> step(std::size_t step);
  /// A step and its number.
  struct NumberedStep {
    std::size_t number = 0;
    Step step;
  };
  /// Returns the step before horizon() if it is a system call, or another instruction, that may
  /// have changed anything; nullopt if something else is the reason for the horizon.
  [[nodiscard]] std::optional<NumberedStep> hiding_step();
  /// Returns true if a signal or a gap comes before step `step`, or nothing is known before it.
  [[nodiscard]] bool interrupted_before(std::size_t step);
  /// Returns what the instruction at `position` may have changed already although it has not run to
  /// its end; null if nothing, as everywhere but at the end.
  [[nodiscard]] const cpu::InsnModel* half_done_at(std::size_t position);
  /// Returns the model of an executed instruction.
  [[nodiscard]] const cpu::InsnModel& model(const Step& step) { return models_.of(step); }
  /// Positions before this one are never known; 0 until such a limit is found.
  [[nodiscard]] std::size_t horizon() const { return horizon_; }
  /// Returns false once a window contained contradictions: a sign that something was misunderstood.
  [[nodiscard]] bool consistent() const { return consistent_; }
  /// The number of windows that were solved.
  [[nodiscard]] std::size_t windows() const { return windows_.size(); }

 private:
  class Boundary;
  struct Piece {
    std::size_t origin;  ///< The window's first step.
    std::size_t begin;   ///< The first position that is taken from it.
    std::size_t end;
    std::unique_ptr<SolvedWindow> solved;
    std::unique_ptr<Boundary> boundary;  ///< The state at `begin`.
  };
  /// Returns the window of a position; null beyond the horizon, or if the deadline has passed.
  Piece* at(std::size_t position);
  [[nodiscard]] std::unique_ptr<SolvedWindow> solve(std::size_t begin, std::size_t end);
  bool solve_next();

  std::size_t steps_;
  Fetch fetch_;
  ModelCache models_;
  EndState& end_;
  std::uint64_t components_;
  HistoryLimits limits_;
  std::vector<Piece> windows_;  ///< The last one first.
  std::size_t horizon_ = 0;
  bool consistent_ = true;
  std::optional<Clock::time_point> deadline_;
};

}  // namespace backtrail::decoder::values
