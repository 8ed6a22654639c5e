// SPDX-License-Identifier: Apache-2.0
#include "decoder/values/window_memory.hpp"

#include <algorithm>

namespace backtrail::decoder::values {

using cpu::AccessKind;

WindowMemory::WindowMemory(const ValueGraph& graph, EndState& end,
                           std::vector<MappingChange> changes)
    : graph_{graph},
      end_{end},
      changes_{std::move(changes)},
      barriers_{graph.accesses.size()},
      address_(graph.accesses.size()),
      place_(graph.accesses.size(), Place::kOpen) {
  for (std::uint32_t i = 0; i < graph.accesses.size(); ++i) {
    if (graph.accesses[i].kind != AccessKind::kLoad) barriers_.add(i);
  }
}

WindowMemory::Place WindowMemory::judge(std::int64_t step, std::uint64_t address, unsigned size) {
  const std::uint64_t last = address + size - 1;
  if (last < address) return Place::kUnstable;
  for (const MappingChange& change : changes_) {
    if (step < change.step && address < change.end && last >= change.begin) {
      return Place::kUnstable;
    }
  }
  const PageKind kind = end_.page(TraceeAddr{address});
  if (kind == PageKind::kUnknown || end_.page(TraceeAddr{last}) != kind) return Place::kUnstable;
  if (kind == PageKind::kConstant) return Place::kConstant;
  return end_.stable(TraceeAddr{address & ~std::uint64_t{7}}) &&
                 end_.stable(TraceeAddr{last & ~std::uint64_t{7}})
             ? Place::kListed
             : Place::kUnstable;
}

std::array<WindowMemory::Part, 2> WindowMemory::parts(std::uint32_t access) const {
  const std::uint64_t address = address_[access];
  const unsigned size = graph_.accesses[access].size;
  const std::uint64_t first = address & ~std::uint64_t{7};
  return {Part{first, covered_bits(first, address, size)},
          Part{first + 8, covered_bits(first + 8, address, size)}};
}

void WindowMemory::settle(std::uint32_t access, std::uint64_t address) {
  const Access& a = graph_.accesses[access];
  address_[access] = address;
  place_[access] = judge(a.step, address, a.size);
  if (place_[access] == Place::kListed) {
    for (const Part& part : parts(access)) {
      if (part.bits != 0) lists_.add(part.granule, access);
    }
  }
  if (a.kind == AccessKind::kStore) barriers_.remove(access);
}

void WindowMemory::settle_range(std::uint32_t access, std::uint64_t begin, std::uint64_t bytes) {
  place_[access] = Place::kUnstable;
  address_[access] = begin;
  if (bytes == 0) {
    barriers_.remove(access);
  } else {
    barriers_.bound(access, begin, begin + bytes - 1);
  }
}

bool WindowMemory::bound(std::uint32_t access, std::uint64_t low, std::uint64_t high) {
  if (barriers_.within(access, low, high)) return false;
  barriers_.bound(access, low, high);
  return true;
}

Known WindowMemory::final_content(std::uint64_t granule) {
  const auto [found, is_new] = image_.try_emplace(granule);
  if (is_new) {
    found->second = end_.granule(TraceeAddr{granule});
    found->second.value &= found->second.mask;
  }
  return found->second;
}

Known WindowMemory::content(std::uint32_t access, std::uint64_t granule) const {
  const Access& a = graph_.accesses[access];
  const Known& value = graph_.known[a.value];
  const std::uint64_t bits = covered_bits(granule, address_[access], a.size);
  return {to_granule(value.value, granule, address_[access]) & bits,
          to_granule(value.mask, granule, address_[access]) & bits};
}

Known WindowMemory::filled(std::uint32_t access, std::uint64_t granule) const {
  const Access& a = graph_.accesses[access];
  if (a.fill == kNoVar) return {};
  const Known& base = graph_.known[a.base];
  const Known& length = graph_.known[a.value];
  const Known& fill = graph_.known[a.fill];
  const std::uint64_t begin = base.value + static_cast<std::uint64_t>(a.offset);
  const std::uint64_t end = begin + length.value;
  if (!base.all() || !length.all() || end < begin) return {};
  Known out;
  for (unsigned byte = 0; byte < 8; ++byte) {
    const std::uint64_t at = granule + byte;
    if (at < begin || at >= end) continue;
    const std::uint64_t from = 8 * ((at - begin) % a.size);
    out.mask |= (fill.mask >> from & 0xff) << (8 * byte);
    out.value |= (fill.value >> from & 0xff) << (8 * byte);
  }
  out.value &= out.mask;
  return out;
}

std::uint64_t WindowMemory::survivors(std::uint32_t from, std::uint32_t to, std::uint64_t granule,
                                      const Known& what, Silent silent) const {
  constexpr unsigned kPatience = 64;
  std::uint64_t alive = 0;
  for (unsigned bit = 0; bit < 64; bit += 8) {
    if ((what.mask >> bit & 0xff) == 0xff) alive |= std::uint64_t{0xff} << bit;
  }
  unsigned seen = 0;
  for (std::uint32_t i = barriers_.next(from, granule); i < to && alive != 0;
       i = barriers_.next(i + 1, granule)) {
    const Access& a = graph_.accesses[i];
    if (a.kind != AccessKind::kStore || ++seen > kPatience) return 0;
    const Known& value = graph_.known[a.value];
    if (!value.all(8U * a.size)) return 0;
    // If the low bits of its address are known, each of its bytes fits only one place.
    const Known& base = graph_.known[a.base];
    const std::uint64_t place = base.value + static_cast<std::uint64_t>(a.offset);
    for (unsigned byte = 0; byte < a.size; ++byte) {
      const std::uint64_t written = value.value >> (8 * byte) & 0xff;
      const Known old = a.old == kNoVar ? Known{} : graph_.known[a.old];
      const bool is_silent =
          (old.mask >> (8 * byte) & 0xff) == 0xff && (old.value >> (8 * byte) & 0xff) == written;
      if (is_silent && silent == Silent::kIsNone) continue;
      for (unsigned bit = 0; bit < 64; bit += 8) {
        if (base.all(3) && ((place + byte) & 7) != bit / 8) continue;
        if ((what.value >> bit & 0xff) == written) alive &= ~(std::uint64_t{0xff} << bit);
      }
    }
  }
  return alive;
}

Known WindowMemory::before(std::size_t position, std::uint64_t granule) {
  // A change during the step at this position comes after it.
  const Place place = judge(static_cast<std::int64_t>(position) - 1, granule, 8);
  if (place == Place::kUnstable) return {};
  if (place == Place::kConstant) return final_content(granule);
  const std::uint32_t now = graph_.first_access(position);
  Known result;
  bool agree = true;
  const auto note = [&](const Known& what, std::uint64_t bits) {
    agree &= result.learn(what.value & bits, what.mask & bits);
  };
  static const Granule no_accesses;
  const Granule* found = lists_.find(granule);
  const auto& list = (found == nullptr ? no_accesses : *found).accesses;
  const auto middle = std::lower_bound(list.begin(), list.end(), now);

  const std::uint32_t next = barriers_.next(now, granule);
  std::uint64_t alive = ~std::uint64_t{0};
  const auto note_later = [&](const Known& what, std::uint64_t bits, std::uint32_t when) {
    note(what, when < next ? bits : bits & survivors(next, when, granule, what));
  };
  for (auto at = middle; at != list.end() && alive != 0; ++at) {
    const std::uint64_t bits =
        alive & covered_bits(granule, address_[*at], graph_.accesses[*at].size);
    if (graph_.accesses[*at].kind == AccessKind::kLoad) {
      note_later(content(*at, granule), bits, *at);
    }
    alive &= ~bits;
  }
  if (next == Barriers::kNone) {
    note(final_content(granule), alive);
  } else {
    note_later(final_content(granule), alive, Barriers::kNone);
  }

  const std::uint32_t previous = barriers_.previous(now, granule);
  alive = ~std::uint64_t{0};
  for (auto at = middle; at != list.begin() && alive != 0;) {
    --at;
    if (previous != Barriers::kNone && *at < previous) break;
    const std::uint64_t bits =
        alive & covered_bits(granule, address_[*at], graph_.accesses[*at].size);
    note(content(*at, granule), bits);
    alive &= ~bits;
  }
  if (previous != Barriers::kNone) note(filled(previous, granule), alive);
  return agree ? result : Known{};
}

/// Returns true if a store to an unknown address may have written some of the bytes.
bool WindowMemory::may_touch(std::uint32_t access, std::uint64_t address, std::uint64_t bytes) {
  const Access& store = graph_.accesses[access];
  for (std::uint64_t granule = address & ~std::uint64_t{7}; granule < address + bytes;
       granule += 8) {
    if (barriers_.next(access, granule) != access) continue;
    const bool at_end = access >= graph_.half_done_accesses;
    const Known after =
        at_end ? final_content(granule) : before(store.step + std::size_t{1}, granule);
    std::uint64_t wanted = 0;
    for (unsigned byte = 0; byte < 8; ++byte) {
      const std::uint64_t at = granule + byte;
      if (at >= address && at < address + bytes) wanted |= std::uint64_t{0xff} << (8 * byte);
    }
    if ((wanted & ~survivors(access, access + 1, granule, after, Silent::kCounts)) != 0)
      return true;
  }
  return false;
}

std::optional<LastWrite> WindowMemory::last_write(std::size_t position, std::uint64_t address,
                                                  std::uint64_t bytes) {
  for (std::uint64_t granule = address & ~std::uint64_t{7}; granule < address + bytes;
       granule += 8) {
    if (end_.page(TraceeAddr{granule}) == PageKind::kUnknown || !end_.stable(TraceeAddr{granule})) {
      return LastWrite{LastWrite::Kind::kOthers, position, 0, false};
    }
  }
  std::optional<LastWrite> found;
  for (std::uint32_t i = graph_.first_access(position); i-- > 0 && !found;) {
    const Access& access = graph_.accesses[i];
    if (access.kind == AccessKind::kLoad) continue;
    const bool is_placed = access.kind == AccessKind::kStore && place_[i] != Place::kOpen;
    if (is_placed) {
      if (address_[i] >= address + bytes || address >= address_[i] + access.size) continue;
    } else if (!barriers_.contains(i) || !may_touch(i, address, bytes)) {
      continue;
    }
    const std::uint32_t first = graph_.first_access(access.step);
    const auto kind = i >= graph_.half_done_accesses ? LastWrite::Kind::kHalfDone
                      : i < first                    ? LastWrite::Kind::kSignal
                                                     : LastWrite::Kind::kStore;
    found = {kind, access.step, i < first ? 0 : i - first, is_placed};
  }
  for (const MappingChange& change : changes_) {
    const bool overlaps = address < change.end && change.begin < address + bytes;
    if (!overlaps || change.step >= position || (found && found->step > change.step)) continue;
    found = {LastWrite::Kind::kMapping, change.step, 0, false};
  }
  return found;
}

}  // namespace backtrail::decoder::values
