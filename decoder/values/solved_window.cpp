// SPDX-License-Identifier: Apache-2.0
#include "decoder/values/solved_window.hpp"

#include <algorithm>

namespace backtrail::decoder::values {

SolvedWindow::SolvedWindow(Window window, ModelCache& models, EndState& end)
    : window_{std::move(window)} {
  constexpr std::size_t kMostChanges = 16;
  std::vector<MappingChange> changes;
  std::size_t from = 0;
  std::size_t links_from = 0;
  const bool may_link = end.all_is_private();
  while (true) {
    graph_ = std::make_unique<ValueGraph>(window_, from, models, end);
    std::vector<StackLink> links;
    if (may_link) links = stack_links(*graph_, links_from);
    solver_ = std::make_unique<ValueSolver>(*graph_, end, changes, std::move(links));
    solver_->solve();
    begin_ = graph_->begin();
    const std::optional<ValueSolver::Flaw> flaw = solver_->flaw(window_);
    consistent_ = solver_->consistent();
    if (!flaw) return;
    if (flaw->links) {
      links_from = flaw->step + std::size_t{1};
    } else if (flaw->change && changes.size() < kMostChanges) {
      changes.push_back(*flaw->change);
    } else {
      from = flaw->step + std::size_t{1};
    }
  }
}

Known SolvedWindow::reg(std::size_t position, Slot slot) const {
  if (!covers(position)) return {};
  return graph_->known[graph_->reg(position, slot)];
}

Registers SolvedWindow::registers(std::size_t position) const {
  Registers out;
  if (!covers(position)) return out;
  std::ranges::transform(graph_->registers(position), out.begin(),
                         [this](Var var) { return graph_->known[var]; });
  return out;
}

Known SolvedWindow::memory(std::size_t position, TraceeAddr granule) const {
  if (!covers(position)) return {};
  return solver_->memory().before(position, granule.value());
}

std::optional<LastWrite> SolvedWindow::last_write(std::size_t position, TraceeAddr address,
                                                  std::uint64_t bytes) const {
  if (!covers(position)) return std::nullopt;
  return solver_->memory().last_write(position, address.value(), bytes);
}

std::optional<TraceeAddr> SolvedWindow::access_address(std::size_t step,
                                                       std::uint32_t number) const {
  if (!covers(step) || step == end()) return std::nullopt;
  const auto address = solver_->address(graph_->first_access(step) + number);
  return address ? std::optional{TraceeAddr{*address}} : std::nullopt;
}

}  // namespace backtrail::decoder::values
