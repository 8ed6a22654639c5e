#pragma once
/// @file
/// The table by which translated code finds landing pads: by so many low bits of the native
/// address. Pads that share an entry ask each other in turn, so there are to be more entries than
/// pads. It lies in memory that the program sees.

#include <cstddef>
#include <cstdint>
#include <span>

#include "arch/base/address.hpp"

namespace backtrail::tracee::cache {

class EntryTable {
 public:
  EntryTable() = default;
  /// As the server sees it: the entries that there are at first, the room for more, and the mask
  /// that translated code reads. Borrowed.
  EntryTable(std::uint8_t* first, std::uint8_t* more, std::uint8_t* mask)
      : first_{first}, more_{more}, mask_{mask} {}

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::size_t index(TraceeAddr head) const { return head.value() & (size_ - 1); }
  /// As many entries as `pads` are to have, at least; some CPUs cannot have more than at first.
  [[nodiscard]] static std::size_t size_for(std::size_t pads);

  [[nodiscard]] TraceeAddr operator[](std::size_t index) const;
  /// The program sees it at once.
  void store(std::size_t index, TraceeAddr target);
  /// Every entry leads there.
  void fill(TraceeAddr target);
  /// As many as size_for() says, which is not less than size(). Who looks meanwhile finds the old
  /// entry, the new one, or that of another address.
  void replace(std::span<const std::uint64_t> entries);

 private:
  [[nodiscard]] std::uint64_t* at(std::size_t index) const;
  void set_size(std::size_t entries);

  std::uint8_t* first_ = nullptr;
  std::uint8_t* more_ = nullptr;
  std::uint8_t* mask_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace backtrail::tracee::cache
