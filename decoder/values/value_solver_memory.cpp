// SPDX-License-Identifier: Apache-2.0
// Exchanges bits between accesses to the same bytes.
#include <algorithm>
#include <iterator>

#include "decoder/values/value_solver.hpp"

namespace backtrail::decoder::values {

using cpu::AccessKind;

Known ValueSolver::final_content(std::uint64_t granule) {
  const auto [found, is_new] = image_.try_emplace(granule);
  if (is_new) {
    found->second = end_.granule(TraceeAddr{granule});
    found->second.value &= found->second.mask;
  }
  return found->second;
}

/// Returns the bits of the granule that the access knows.
Known ValueSolver::content(std::uint32_t access, std::uint64_t granule) const {
  const Access& a = graph_.accesses[access];
  const Known& value = graph_.known[a.value];
  const std::uint64_t bits = covered_bits(granule, address_[access], a.size);
  return {to_granule(value.value, granule, address_[access]) & bits,
          to_granule(value.mask, granule, address_[access]) & bits};
}

void ValueSolver::take(std::uint32_t access, std::uint64_t granule, Known what,
                       std::uint64_t bits) {
  const Access& a = graph_.accesses[access];
  const std::uint64_t own = cpu::low_bits(8U * a.size);
  const std::uint64_t mask = from_granule(what.mask & bits, granule, address_[access]) & own;
  if (mask == 0) return;
  learn(a.value, from_granule(what.value & bits, granule, address_[access]) & mask, mask);
}

void ValueSolver::exchange(std::uint32_t one, std::uint32_t other, std::uint64_t granule,
                           std::uint64_t bits) {
  const Known of_one = content(one, granule);
  const Known of_other = content(other, granule);
  take(one, granule, of_other, bits);
  take(other, granule, of_one, bits);
}

void ValueSolver::spread(std::uint32_t access) {
  for (const Part& part : parts(access)) {
    if (part.bits == 0) continue;
    spread_forwards(access, part.granule);
    if (graph_.accesses[access].kind == AccessKind::kLoad) {
      spread_backwards(access, part.granule);
    }
  }
}

/// Takes bytes known to be `what` before access `to`. Returns the bits of those that no barrier
/// from `from` on can have written: its bytes are all known, and none equals the byte of `what`.
std::uint64_t ValueSolver::survivors(std::uint32_t from, std::uint32_t to, std::uint64_t granule,
                                     const Known& what) const {
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
      for (unsigned bit = 0; bit < 64; bit += 8) {
        if (base.all(3) && ((place + byte) & 7) != bit / 8) continue;
        if ((what.value >> bit & 0xff) == written) alive &= ~(std::uint64_t{0xff} << bit);
      }
    }
  }
  return alive;
}

/// Forward: bytes keep the contents that the access left until the next store or barrier.
void ValueSolver::spread_forwards(std::uint32_t access, std::uint64_t granule) {
  const auto& list = lists_.find(granule)->accesses;
  std::uint64_t alive = covered_bits(granule, address_[access], graph_.accesses[access].size);
  const std::uint32_t barrier = barriers_.next(access + 1, granule);
  for (auto at = std::upper_bound(list.begin(), list.end(), access); at != list.end(); ++at) {
    if (*at > barrier) return;
    const Access& other = graph_.accesses[*at];
    const std::uint64_t common = alive & covered_bits(granule, address_[*at], other.size);
    if (common == 0) continue;
    if (other.kind == AccessKind::kLoad) exchange(access, *at, granule, common);
    alive &= ~common;
    if (alive == 0) return;
  }
  const Known last = final_content(granule);
  if (barrier != Barriers::kNone) {
    alive &= survivors(barrier, Barriers::kNone, granule, last);
  }
  take(access, granule, last, alive);
}

/// Backward: before a load, bytes had the contents known from the last store or load before it.
void ValueSolver::spread_backwards(std::uint32_t access, std::uint64_t granule) {
  const auto& list = lists_.find(granule)->accesses;
  std::uint64_t alive = covered_bits(granule, address_[access], graph_.accesses[access].size);
  const std::uint32_t barrier = barriers_.previous(access, granule);
  for (auto at = std::lower_bound(list.begin(), list.end(), access); at != list.begin();) {
    --at;
    const std::uint64_t common =
        alive & covered_bits(granule, address_[*at], graph_.accesses[*at].size);
    if (common == 0) continue;
    if (barrier == Barriers::kNone || *at > barrier) {
      exchange(access, *at, granule, common);
    } else {
      const Known later = content(access, granule);
      take(*at, granule, later, common & survivors(*at + 1, access, granule, later));
    }
    alive &= ~common;
    if (alive == 0) return;
  }
}

/// Returns the bytes of a load, as a mask of bits, that a store before it may have written.
/// A place is impossible if a byte that the store would have left there differs from the one that
/// was loaded (of those in `alive`), or if the load's address cannot be that.
std::uint64_t ValueSolver::may_have_written(std::uint32_t suspect, const Access& load,
                                            std::uint64_t alive) const {
  const Access& store = graph_.accesses[suspect];
  const Known& value = graph_.known[store.value];
  const Known& loaded = graph_.known[load.value];
  const Known& base = graph_.known[load.base];
  const std::uint64_t own = cpu::low_bits(8U * store.size);
  std::uint64_t written = 0;
  for (int first = 1 - store.size; first < load.size; ++first) {
    const auto shifted = [first](std::uint64_t bits) {
      return first < 0 ? bits >> (-8 * first) : bits << (8 * first);
    };
    if (place_[suspect] != Place::kOpen) {
      const std::uint64_t load_at = address_[suspect] - static_cast<std::uint64_t>(first);
      const std::uint64_t load_base = load_at - static_cast<std::uint64_t>(load.offset);
      if (((load_base ^ base.value) & base.mask) != 0) continue;
    }
    const std::uint64_t compared = shifted(value.mask & own) & alive;
    if (((shifted(value.value) ^ loaded.value) & compared) == 0) written |= shifted(own);
  }
  return written;
}

/// Returns true if a system call or a string instruction has turned out to write nothing, and to
/// clear no memory either, as madvise(2) does, and brk(2) that gives the heap back and takes it
/// again.
bool ValueSolver::leaves_memory(std::uint32_t access) const {
  if (place_[access] == Place::kOpen || barriers_.contains(access)) return false;
  const auto after = std::ranges::upper_bound(graph_.calls, access, {}, &SystemCall::first_access);
  if (after == graph_.calls.begin()) return true;
  const auto call = std::prev(after);
  if (access >= call->first_access + kCallAccesses) return true;
  const auto& effects = effects_[static_cast<std::size_t>(call - graph_.calls.begin())];
  return effects && !effects->mapping && !effects->heap;
}

/// The loaded bytes were stored there, unless a store in between can have written them.
void ValueSolver::handle_link(const StackLink& link) {
  const Access& earlier = graph_.accesses[link.earlier];
  const Access& later = graph_.accesses[link.later];
  // Accesses with known addresses are in the lists.
  if (place_[link.earlier] != Place::kOpen && place_[link.later] != Place::kOpen) return;
  const std::uint64_t own = cpu::low_bits(8U * later.size);
  const Known loaded = graph_.known[later.value];
  std::uint64_t alive = 0;
  for (unsigned bit = 0; bit < 8U * later.size; bit += 8) {
    if ((loaded.mask >> bit & 0xff) == 0xff) alive |= std::uint64_t{0xff} << bit;
  }
  bool is_equal = true;
  for (auto at = link.suspects.rbegin(); at != link.suspects.rend(); ++at) {
    const Access& suspect = graph_.accesses[*at];
    if (suspect.kind != AccessKind::kStore) {
      if (!leaves_memory(*at)) return;
      continue;
    }
    is_equal = false;
    alive &= ~may_have_written(*at, later, alive);
    if (alive == 0) return;
  }
  if (is_equal) {
    alive = own;
    const Known stored = graph_.known[earlier.value];
    learn(later.value, stored.value & stored.mask & own, stored.mask & own);
  }
  learn(earlier.value, loaded.value & loaded.mask & alive, loaded.mask & alive);
}

Known ValueSolver::memory(std::size_t position, std::uint64_t granule) {
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
  return agree ? result : Known{};
}

/// Returns true if a store to an unknown address may have written some of the bytes.
bool ValueSolver::may_touch(std::uint32_t access, std::uint64_t address, std::uint64_t bytes) {
  const Access& store = graph_.accesses[access];
  for (std::uint64_t granule = address & ~std::uint64_t{7}; granule < address + bytes;
       granule += 8) {
    if (barriers_.next(access, granule) != access) continue;
    const bool at_end = access >= graph_.half_done_accesses;
    const Known after =
        at_end ? final_content(granule) : memory(store.step + std::size_t{1}, granule);
    std::uint64_t wanted = 0;
    for (unsigned byte = 0; byte < 8; ++byte) {
      const std::uint64_t at = granule + byte;
      if (at >= address && at < address + bytes) wanted |= std::uint64_t{0xff} << (8 * byte);
    }
    if ((wanted & ~survivors(access, access + 1, granule, after)) != 0) return true;
  }
  return false;
}

std::optional<LastWrite> ValueSolver::last_write(std::size_t position, std::uint64_t address,
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
