// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The look-up table by which translated code finds indirect-branch entries, indexed by the low
/// bits of the native address. Entries with one index form a list and pass control on in turn, so
/// the table should be larger than their number. It lies in memory that the program can read.

#include <cstddef>
#include <cstdint>
#include <span>

#include "arch/base/address.hpp"

namespace backtrail::tracee::cache {

class EntryTable {
 public:
  EntryTable() = default;
  /// Takes the server's view of three places: the first part of the table, room for its growth, and
  /// the mask that translated code reads. Borrowed.
  EntryTable(std::uint8_t* first, std::uint8_t* more, std::uint8_t* mask)
      : first_{first}, more_{more}, mask_{mask} {}

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::size_t index(TraceeAddr start) const { return index_in(size_, start); }
  /// Returns the index in a table of `size` places.
  [[nodiscard]] static std::size_t index_in(std::size_t size, TraceeAddr start) {
    return start.value() & (size - 1);
  }
  /// Returns the table size for `ib_entries` indirect-branch entries. Some CPUs cannot use more
  /// than the first part.
  [[nodiscard]] static std::size_t size_for(std::size_t ib_entries);

  [[nodiscard]] TraceeAddr operator[](std::size_t index) const;
  /// Stores a target; the program sees it at once.
  void store(std::size_t index, TraceeAddr target);
  /// Returns the table size at first. Most processes are short and have few entries.
  [[nodiscard]] static std::size_t first_size();
  /// Sets every place of the table to `target`; the first time there are first_size() of them.
  void fill(TraceeAddr target);
  /// Replaces a table whose every place is `target` by a larger one of that kind. `size` is as in
  /// replace().
  void grow(std::size_t size, TraceeAddr target);
  /// Replaces the table by one of at least size() places, a power of two. Threads that look
  /// meanwhile find the old target, the new one, or that of another address.
  void replace(std::span<const std::uint64_t> entries);

 private:
  [[nodiscard]] std::uint64_t* at(std::size_t index) const;
  void set_size(std::size_t entries);
  /// Populates the pages of places that do not exist yet.
  void populate(std::size_t size) const;

  std::uint8_t* first_ = nullptr;
  std::uint8_t* more_ = nullptr;
  std::uint8_t* mask_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace backtrail::tracee::cache
