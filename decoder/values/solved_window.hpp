// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// One window of a trace, with all values that follow from it and from the state at its end.
///
/// The rule is strict: a bit is known only if it follows. Everything starts unknown, and relations
/// only add bits. Each assumption of the solution (the effects of a system call, unchanged code) is
/// checked afterwards; if one does not hold, the window is solved again with less. Facts that
/// contradict each other show that something was misunderstood; nothing is known then.

#include <array>
#include <memory>
#include <optional>

#include "decoder/values/value_graph.hpp"
#include "decoder/values/value_solver.hpp"

namespace backtrail::decoder::values {

/// A value for each register.
using Registers = std::array<Known, cpu::kSlotCount>;

class SolvedWindow {
 public:
  /// `models` and `end` are borrowed; `end` must outlive this.
  SolvedWindow(Window window, ModelCache& models, EndState& end);

  /// Returns the earliest position of which anything may be known. Positions count the steps of the
  /// window.
  [[nodiscard]] std::size_t begin() const { return begin_; }
  [[nodiscard]] std::size_t end() const { return window_.steps.size(); }
  /// Returns false if facts contradicted each other; everything is then unknown.
  [[nodiscard]] bool consistent() const { return consistent_; }
  [[nodiscard]] const Window& window() const { return window_; }

  /// Returns a register before step `position`.
  [[nodiscard]] Known reg(std::size_t position, Slot slot) const;
  /// As reg(), of all registers.
  [[nodiscard]] Registers registers(std::size_t position) const;
  /// Returns the 8 bytes at `granule`, a multiple of 8, before step `position`.
  [[nodiscard]] Known memory(std::size_t position, TraceeAddr granule) const;
  /// See WindowMemory::last_write(). nullopt, too, if `position` is before begin().
  [[nodiscard]] std::optional<LastWrite> last_write(std::size_t position, TraceeAddr address,
                                                    std::uint64_t bytes) const;
  /// Returns the address of an access, by its number in a step from begin() on; nullopt if unknown.
  [[nodiscard]] std::optional<TraceeAddr> access_address(std::size_t step,
                                                         std::uint32_t number) const;
  /// Returns true if a mapping may have been removed in the window.
  [[nodiscard]] bool removes_mappings() const { return solver_->removes_mappings(); }

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
