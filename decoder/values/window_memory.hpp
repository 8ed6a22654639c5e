// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Which bytes the accesses of a window touch, and what they tell about memory.

#include <array>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "decoder/values/barriers.hpp"
#include "decoder/values/memory_lists.hpp"
#include "decoder/values/value_graph.hpp"

namespace backtrail::decoder::values {

/// A range of addresses that may have been mapped differently before step `step`.
struct MappingChange {
  std::uint32_t step = 0;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

/// The newest write to some bytes, or what may have been one.
struct LastWrite {
  enum class Kind : std::uint8_t {
    kStore,     ///< The instruction at `step` stores.
    kMapping,   ///< The system call at `step` may have made the memory anew.
    kSignal,    ///< A signal's frame was written before `step`.
    kHalfDone,  ///< The instruction at the end, `step`, may have stored before it was stopped.
    kOthers,    ///< Others may write the memory; `step` is the position.
  };
  Kind kind = Kind::kStore;
  std::size_t step = 0;
  std::uint32_t access = 0;  ///< Number among the accesses of the step; for kStore.
  bool is_certain = false;   ///< False if the place that was written is not known.
};

/// The memory of a window, as far as the addresses and values of its accesses are known. A store to
/// an unknown address is a barrier: no conclusion crosses it.
class WindowMemory {
 public:
  /// Knowledge of an access's address.
  enum class Place : std::uint8_t {
    kOpen,      ///< Unknown.
    kListed,    ///< Memory that only the window's accesses write; see lists().
    kConstant,  ///< Memory that never changes.
    kUnstable,  ///< Memory of which nothing can be concluded, or a range.
  };
  /// The part of an access that lies in one granule.
  struct Part {
    std::uint64_t granule;
    std::uint64_t bits;
  };

  /// Borrows the graph and the end. `changes` are the mapping changes known beforehand.
  WindowMemory(const ValueGraph& graph, EndState& end, std::vector<MappingChange> changes);

  [[nodiscard]] Place place(std::uint32_t access) const { return place_[access]; }
  /// Returns the address of an access, unless its place is kOpen.
  [[nodiscard]] std::uint64_t address(std::uint32_t access) const { return address_[access]; }
  /// Notes the address of a load or store.
  void settle(std::uint32_t access, std::uint64_t address);
  /// Turns an unknown store into one to [begin, begin + bytes).
  void settle_range(std::uint32_t access, std::uint64_t begin, std::uint64_t bytes);
  /// Bounds a store to [low, high], both included. Returns false if that was known.
  bool bound(std::uint32_t access, std::uint64_t low, std::uint64_t high);

  [[nodiscard]] const Barriers& barriers() const { return barriers_; }
  [[nodiscard]] const MemoryLists& lists() const { return lists_; }
  [[nodiscard]] const std::vector<MappingChange>& changes() const { return changes_; }
  void add_change(const MappingChange& change) { changes_.push_back(change); }

  [[nodiscard]] std::array<Part, 2> parts(std::uint32_t access) const;
  /// Returns the bits of the granule that the access knows.
  [[nodiscard]] Known content(std::uint32_t access, std::uint64_t granule) const;
  /// Returns the bits of the granule that a range store has filled it with; none if the store is
  /// another one, or its place or its value is not known.
  [[nodiscard]] Known filled(std::uint32_t access, std::uint64_t granule) const;
  /// Returns the granule's bits at the end of the window.
  [[nodiscard]] Known final_content(std::uint64_t granule);
  /// Says whether a store counts that has written what was there before.
  enum class Silent : std::uint8_t { kCounts, kIsNone };
  /// Takes bytes known to be `what` before access `to`. Returns the bits of those that no barrier
  /// from `from` on can have written: its bytes are all known, and none equals the byte of `what`.
  [[nodiscard]] std::uint64_t survivors(std::uint32_t from, std::uint32_t to, std::uint64_t granule,
                                        const Known& what, Silent silent = Silent::kIsNone) const;

  /// Returns the known bits of the 8 bytes at `granule` before step `position`.
  [[nodiscard]] Known before(std::size_t position, std::uint64_t granule);
  /// Returns the newest write to [address, address + bytes) before step `position`; nullopt if the
  /// graph has none. Stores to unknown addresses count unless the bytes there differ from theirs.
  [[nodiscard]] std::optional<LastWrite> last_write(std::size_t position, std::uint64_t address,
                                                    std::uint64_t bytes);

 private:
  [[nodiscard]] Place judge(std::int64_t step, std::uint64_t address, unsigned size);
  [[nodiscard]] bool may_touch(std::uint32_t access, std::uint64_t address, std::uint64_t bytes);

  const ValueGraph& graph_;
  EndState& end_;
  std::vector<MappingChange> changes_;
  Barriers barriers_;
  MemoryLists lists_;
  std::vector<std::uint64_t> address_;  ///< By access.
  std::vector<Place> place_;            ///< By access.
  std::unordered_map<std::uint64_t, Known> image_;
};

}  // namespace backtrail::decoder::values
