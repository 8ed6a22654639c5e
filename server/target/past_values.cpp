// SPDX-License-Identifier: Apache-2.0
#include "server/target/past_values.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "arch/base/bytes.hpp"

namespace backtrail::server {

using decoder::PastPosition;
using decoder::values::HistoryLimits;
using decoder::values::Known;
using decoder::values::PageKind;
using decoder::values::Slot;

namespace {

constexpr HistoryLimits kLimits{};
constexpr std::size_t kMostSteps = kLimits.window_steps * kLimits.most_windows;
constexpr Slot kCallResult = arch::cpu::values::kRax;
constexpr unsigned kByteBits = 8;
constexpr std::uint64_t kByteMask = 0xff;

}  // namespace

Known PastValues::End::reg(Slot slot) {
  if (thread_.in_call && slot == kCallResult) return {};
  return slots_.read(slot, *thread_.registers);
}

PageKind PastValues::End::page(TraceeAddr address) {
  const PageKind kind = pages_.kind(address);
  // The solver sees what the thread itself does to mappings, but not what others do.
  const bool may_change = kind == PageKind::kConstant && !pages_.alone() && constant_ != nullptr &&
                          constant_->is_told() && constant_->bytes_at(oldest_, address, 1) == 0;
  return may_change ? PageKind::kUnknown : kind;
}

Known PastValues::End::granule(TraceeAddr address) {
  std::array<std::uint8_t, sizeof(std::uint64_t)> bytes{};
  if (!pages_.stable(address)) return {};
  // A file has the first contents of its mapping, not what the program wrote there since.
  const bool constant = pages_.kind(address) == PageKind::kConstant;
  const std::size_t got =
      constant ? memory_.read(address, bytes) : memory_.read_persistent(address, bytes);
  const unsigned bits = kByteBits * static_cast<unsigned>(got);
  return {load_le<std::uint64_t>(bytes, 0), arch::cpu::values::low_bits(bits)};
}

PastValues::PastValues(PastEnd& end, const ThreadEnd& thread, const RegisterSlots& slots,
                       decoder::Timeline& timeline)
    : slots_{slots},
      index_{timeline, *thread.records, kMostSteps, thread.changed, thread.facts},
      end_{end, thread, slots, timeline.code() == nullptr ? nullptr : &timeline.code()->constant(),
           index_.place(0).block},
      history_{index_.steps(),
               [this](std::size_t first, std::size_t last) { return index_.window(first, last); },
               end.memory(), end_,
               thread.registers ? arch::cpu::values::components_of(thread.registers->xsave)
                                : arch::cpu::values::kAnyComponents} {}

std::vector<bool> PastValues::registers(const PastPosition& place, arch::cpu::RawRegisters& raw) {
  const auto step = index_.number(place);
  if (!step) return {};
  const decoder::values::Registers known = history_.registers(*step);
  return slots_.write([&](Slot slot) { return known[slot]; }, raw);
}

Known PastValues::slot(const PastPosition& place, Slot slot) {
  const auto step = index_.number(place);
  return step ? history_.reg(*step, slot) : Known{};
}

std::size_t PastValues::memory(const PastPosition& place, TraceeAddr address,
                               std::span<std::uint8_t> out) {
  const auto step = index_.number(place);
  if (!step) return 0;
  std::vector<std::uint8_t> known(out.size());
  history_.memory(*step, address, out, known);
  const auto unknown =
      std::ranges::find_if(known, [](std::uint8_t mask) { return mask != kByteMask; });
  return static_cast<std::size_t>(unknown - known.begin());
}

}  // namespace backtrail::server
