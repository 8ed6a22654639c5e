#pragma once
/// @file
/// One window of a trace with all values that follow from it and from the state at its end.
///
/// The rule is strict: a bit is known only if it follows. Everything starts unknown; relations only
/// add bits; and each assumption that the solution rests on (what a system call did, that code is
/// today what it was then) is checked afterwards. If one does not hold, the window is solved again
/// with less. Facts that contradict each other show that something was not understood: then nothing
/// at all is known.

#include <memory>
#include <optional>

#include "decoder/values/value_graph.hpp"
#include "decoder/values/value_solver.hpp"

namespace backtrail::decoder::values {

class SolvedWindow {
 public:
  /// `models` and `end` are borrowed; `end` must outlive this.
  SolvedWindow(Window window, ModelCache& models, EndState& end);

  /// The earliest position of which anything may be known; positions count the steps of the window.
  [[nodiscard]] std::size_t begin() const { return begin_; }
  [[nodiscard]] std::size_t end() const { return window_.steps.size(); }
  /// False if facts contradicted each other; everything is then unknown.
  [[nodiscard]] bool consistent() const { return consistent_; }
  [[nodiscard]] const Window& window() const { return window_; }

  /// A register before step `position`.
  [[nodiscard]] Known reg(std::size_t position, Slot slot) const;
  /// The 8 bytes at `granule`, a multiple of 8, before step `position`.
  [[nodiscard]] Known memory(std::size_t position, TraceeAddr granule) const;
  /// Whether the mapping at an address may have been another one before the window.
  [[nodiscard]] bool remaps(TraceeAddr address) const;

  [[nodiscard]] const ValueGraph& graph() const { return *graph_; }
  [[nodiscard]] const ValueSolver& solver() const { return *solver_; }

 private:
  [[nodiscard]] bool covers(std::size_t position) const {
    return consistent_ && position >= begin_ && position <= end();
  }

  Window window_;
  std::size_t begin_ = 0;
  bool consistent_ = true;
  std::unique_ptr<ValueGraph> graph_;
  std::unique_ptr<ValueSolver> solver_;
};

}  // namespace backtrail::decoder::values
