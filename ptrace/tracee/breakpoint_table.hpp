#pragma once
/// @file
/// Software breakpoints (int3) of one address space.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "ptrace/tracee/tracee_memory.hpp"

namespace backtrail::tracee {

/// Owns the int3 bytes in one address space and knows the bytes below them. Everything that shows
/// memory to people goes through mask_read, everything that changes it through write.
///
/// The program may replace what is at an address (unmap, map, write); then the int3 is gone and
/// the table neither masks there nor restores a stale byte.
class BreakpointTable {
 public:
  /// `memory` is borrowed and must outlive the table.
  explicit BreakpointTable(TraceeMemory& memory) : memory_{&memory} {}

  /// Idempotent. Error kUnreadable for a place that is not mapped or cannot be written.
  Result<void> insert(TraceeAddr address);
  /// Errors: kNotFound; those of writing; kUnreadable when the memory is gone, but the breakpoint
  /// is removed then.
  Result<void> remove(TraceeAddr address);

  /// Takes every int3 out of memory but keeps the table; reinsert_all puts them back. Both go on
  /// after a failure and return the first error.
  Result<void> lift_all();
  Result<void> reinsert_all();
  /// The same for one, for stepping over it. Error kNotFound.
  Result<void> lift(TraceeAddr address);
  Result<void> reinsert(TraceeAddr address);

  /// A breakpoint is set at `address` (lifted or not).
  [[nodiscard]] bool contains(TraceeAddr address) const { return entries_.contains(address); }
  /// Its int3 is in memory, as far as we know.
  [[nodiscard]] bool inserted(TraceeAddr address) const;
  /// The program's own byte below it.
  [[nodiscard]] std::optional<std::uint8_t> original(TraceeAddr address) const;
  [[nodiscard]] std::size_t size() const { return entries_.size(); }
  [[nodiscard]] std::vector<TraceeAddr> addresses() const;
  [[nodiscard]] bool empty() const { return entries_.empty(); }

  /// Replaces our int3s in `bytes`, just read from `address` on, by the program's own bytes.
  void mask_read(TraceeAddr address, std::span<std::uint8_t> bytes) const;
  /// memory.read, masked.
  std::size_t read(TraceeAddr address, std::span<std::uint8_t> out) const;
  /// memory.write below the breakpoints: they stay in place, and what is written shows when they
  /// are removed.
  Result<void> write(TraceeAddr address, std::span<const std::uint8_t> data);

  /// The table of a forked child, whose memory has the same int3s.
  [[nodiscard]] BreakpointTable copy_for(TraceeMemory& child) const;
  /// After exec: the int3s went with the old program.
  void forget_all() { entries_.clear(); }

 private:
  struct Entry {
    std::uint8_t original = 0;
    bool inserted = false;
  };
  Result<void> plant(TraceeAddr address, Entry& entry);
  Result<void> restore(TraceeAddr address, Entry& entry);

  TraceeMemory* memory_;
  std::map<TraceeAddr, Entry> entries_;
};

}  // namespace backtrail::tracee
