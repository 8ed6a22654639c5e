// SPDX-License-Identifier: Apache-2.0
#include "decoder/values/value_history.hpp"

#include <algorithm>
#include <array>
#include <iterator>

namespace backtrail::decoder::values {

/// The state where the positions of a window begin, as the end of the previous one. Answers from
/// the state at the end of the trace and from what all windows since have changed, however many
/// there are.
class ValueHistory::Boundary final : public EndState {
 public:
  /// @param after  The boundary at the end of the window; null if it is the last one, which ends in
  ///               `end`.
  /// @param position  The boundary's position in the window.
  Boundary(const SolvedWindow& later, std::size_t position, const Boundary* after, EndState& end)
      : later_{later}, position_{position}, end_{end}, all_is_private_{!later.removes_mappings()} {
    if (after != nullptr) changes_ = after->changes_;
    std::ranges::copy_if(
        later.solver().mapping_changes(), std::back_inserter(changes_),
        [position](const MappingChange& change) { return change.step >= position; });
    all_is_private_ =
        all_is_private_ && (after != nullptr ? after->all_is_private_ : end.all_is_private());
  }

  Known reg(Slot slot) override { return later_.reg(position_, slot); }
  PageKind page(TraceeAddr address) override {
    const bool is_remapped = std::ranges::any_of(changes_, [address](const MappingChange& change) {
      return address.value() >= change.begin && address.value() < change.end;
    });
    return is_remapped ? PageKind::kUnknown : end_.page(address);
  }
  Known granule(TraceeAddr address) override { return later_.memory(position_, address); }
  bool stable(TraceeAddr granule) override { return end_.stable(granule); }
  bool all_is_private() override { return all_is_private_; }
  std::optional<std::pair<TraceeAddr, TraceeAddr>> heap() override { return end_.heap(); }

 private:
  const SolvedWindow& later_;
  std::size_t position_;
  EndState& end_;
  std::vector<MappingChange> changes_;  ///< This window and all later ones made them.
  bool all_is_private_;
};

ValueHistory::ValueHistory(std::size_t steps, Fetch fetch, CodeReader& code, EndState& end,
                           std::uint64_t components, HistoryLimits limits)
    : steps_{steps},
      fetch_{std::move(fetch)},
      models_{code, components},
      end_{end},
      components_{components},
      limits_{limits} {
  windows_.reserve(limits.most_windows);
}

ValueHistory::~ValueHistory() = default;

std::unique_ptr<SolvedWindow> ValueHistory::solve(std::size_t begin, std::size_t end) {
  EndState& state = windows_.empty() ? end_ : *windows_.back().boundary;
  Window window = fetch_(begin, end);
  window.components = components_;
  window.stopped = end == steps_;
  window.links = limits_.links;
  return std::make_unique<SolvedWindow>(std::move(window), models_, state);
}

bool ValueHistory::solve_next() {
  const std::size_t end = windows_.empty() ? steps_ : windows_.back().begin;
  if (horizon_ != 0 || (!windows_.empty() && end == 0)) return false;
  std::size_t begin = end > limits_.window_steps ? end - limits_.window_steps : 0;
  // The first steps may need values from before them, such as the number of a system call.
  constexpr std::size_t kContextPart = 8;
  std::size_t origin = begin - std::min(begin, limits_.window_steps / kContextPart);
  auto solved = solve(origin, end);
  constexpr std::size_t kNearBegin = 100;
  constexpr std::array<std::size_t, 3> kMoreSteps{200, 333, 1000};
  for (const std::size_t more : kMoreSteps) {
    const bool short_of = solved->begin() > begin - origin && solved->begin() < kNearBegin;
    if (!solved->consistent() || !short_of || origin == 0) break;
    origin -= std::min(origin, more);
    solved = solve(origin, end);
  }
  consistent_ &= solved->consistent();
  if (!solved->consistent()) {
    horizon_ = end;
  } else if (solved->begin() > begin - origin) {
    begin = origin;
    horizon_ = origin + solved->begin();
  } else if (windows_.size() + 1 == limits_.most_windows) {
    horizon_ = begin;
  }
  const Boundary* after = windows_.empty() ? nullptr : windows_.back().boundary.get();
  auto boundary = std::make_unique<Boundary>(*solved, begin - origin, after, end_);
  windows_.push_back({origin, begin, end, std::move(solved), std::move(boundary)});
  return true;
}

ValueHistory::Piece* ValueHistory::at(std::size_t position) {
  while (windows_.empty() || position < windows_.back().begin) {
    if (deadline_ && Clock::now() >= *deadline_) return nullptr;
    if (!solve_next()) return nullptr;
  }
  return &*std::ranges::partition_point(
      windows_, [position](const Piece& piece) { return piece.begin > position; });
}

Known ValueHistory::reg(std::size_t position, Slot slot) {
  if (position > steps_) return {};
  const Piece* piece = at(position);
  return piece == nullptr ? Known{} : piece->solved->reg(position - piece->origin, slot);
}

Registers ValueHistory::registers(std::size_t position) {
  if (position > steps_) return {};
  const Piece* piece = at(position);
  return piece == nullptr ? Registers{} : piece->solved->registers(position - piece->origin);
}

void ValueHistory::memory(std::size_t position, TraceeAddr address, std::span<std::uint8_t> out,
                          std::span<std::uint8_t> known) {
  std::fill(known.begin(), known.end(), std::uint8_t{0});
  const Piece* piece = position > steps_ ? nullptr : at(position);
  if (piece == nullptr) return;
  Known granule;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::uint64_t byte = address.value() + i;
    const auto shift = static_cast<unsigned>(8 * (byte % 8));
    if (i == 0 || byte % 8 == 0) {
      granule = piece->solved->memory(position - piece->origin, TraceeAddr{byte - byte % 8});
    }
    if ((granule.mask >> shift & 0xff) != 0xff) continue;
    out[i] = static_cast<std::uint8_t>(granule.value >> shift);
    known[i] = 0xff;
  }
}

std::optional<LastWrite> ValueHistory::last_write(std::size_t position, TraceeAddr address,
                                                  std::uint64_t bytes) {
  while (position > 0) {
    const Piece* piece = at(position - 1);
    if (piece == nullptr) return std::nullopt;
    if (auto found = piece->solved->last_write(position - piece->origin, address, bytes)) {
      found->step += piece->origin;
      return found;
    }
    // Steps before the first one of its graph may have written, and are in earlier windows.
    position = piece->origin + piece->solved->begin();
    if (position > piece->begin) return std::nullopt;
  }
  return std::nullopt;
}

std::optional<TraceeAddr> ValueHistory::access_address(std::size_t step, std::uint32_t number) {
  const Piece* piece = step < steps_ ? at(step) : nullptr;
  if (piece == nullptr) return std::nullopt;
  return piece->solved->access_address(step - piece->origin, number);
}

std::optional<Step> ValueHistory::step(std::size_t step) {
  const Piece* piece = step < steps_ ? at(step) : nullptr;
  if (piece == nullptr || step < horizon_) return std::nullopt;
  return piece->solved->window().steps[step - piece->origin];
}

std::optional<ValueHistory::NumberedStep> ValueHistory::hiding_step() {
  const bool found = horizon_ != 0 && windows_.back().solved->consistent();
  if (!found || horizon_ <= windows_.back().origin) return std::nullopt;
  const std::size_t at = horizon_ - windows_.back().origin;
  const Window& window = windows_.back().solved->window();
  const bool is_gap = std::ranges::any_of(window.events, [at](const Event& event) {
    return event.kind == EventKind::kGap && event.before == at;
  });
  const Step& step = window.steps[at - 1];
  const cpu::Special special = models_.of(step).special;
  if (is_gap || (special != cpu::Special::kSystemCall && special != cpu::Special::kOpaque)) {
    return std::nullopt;
  }
  return NumberedStep{horizon_ - 1, step};
}

const cpu::InsnModel* ValueHistory::half_done_at(std::size_t position) {
  const Piece* piece = position == steps_ ? at(position) : nullptr;
  return piece == nullptr ? nullptr : models_.interrupted(piece->solved->window().end_pc);
}

bool ValueHistory::interrupted_before(std::size_t step) {
  const Piece* piece = step > 0 && step <= steps_ ? at(step - 1) : nullptr;
  if (piece == nullptr || step <= horizon_) return true;
  const auto& events = piece->solved->window().events;
  return std::any_of(events.begin(), events.end(),
                     [&](const Event& event) { return event.before == step - piece->origin; });
}

}  // namespace backtrail::decoder::values
