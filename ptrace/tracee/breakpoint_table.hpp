// SPDX-License-Identifier: Apache-2.0
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

/// Owns the int3 bytes in one address space and knows the bytes that they replace. Memory shown to
/// users goes through mask_read(); memory that is changed goes through write().
///
/// If the program replaces the memory at a breakpoint (unmap, map, write), the int3 is gone; the
/// table then neither masks there nor restores a stale byte.
class BreakpointTable {
 public:
  /// `memory` is borrowed and must outlive the table.
  explicit BreakpointTable(TraceeMemory& memory) : memory_{&memory} {}

  /// Idempotent. Error kUnreadable if the address is not mapped or cannot be written.
  Result<void> insert(TraceeAddr address);
  /// Errors: kNotFound; those of writing; kUnreadable if the memory is gone, in which case the
  /// breakpoint is removed anyway.
  Result<void> remove(TraceeAddr address);

  /// lift_all() removes every int3 from memory but keeps the table; reinsert_all() puts them back.
  /// Both continue after a failure and return the first error.
  Result<void> lift_all();
  Result<void> reinsert_all();
  /// Lifts or reinserts one breakpoint, for stepping over it. Error kNotFound.
  Result<void> lift(TraceeAddr address);
  Result<void> reinsert(TraceeAddr address);

  /// Returns true if a breakpoint is set at `address`, lifted or not.
  [[nodiscard]] bool contains(TraceeAddr address) const { return entries_.contains(address); }
  /// Returns true if its int3 is in memory, as far as known.
  [[nodiscard]] bool inserted(TraceeAddr address) const;
  /// Returns the program's byte at the breakpoint; nullopt if there is none.
  [[nodiscard]] std::optional<std::uint8_t> original(TraceeAddr address) const;
  [[nodiscard]] std::size_t size() const { return entries_.size(); }
  [[nodiscard]] std::vector<TraceeAddr> addresses() const;
  [[nodiscard]] bool empty() const { return entries_.empty(); }

  /// Replaces int3s of breakpoints in `bytes`, just read from `address`, by the program's bytes.
  void mask_read(TraceeAddr address, std::span<std::uint8_t> bytes) const;
  /// Reads memory and masks breakpoints.
  std::size_t read(TraceeAddr address, std::span<std::uint8_t> out) const;
  /// Writes memory but keeps the int3s of breakpoints in place. Bytes written there take effect
  /// when the breakpoint is removed.
  Result<void> write(TraceeAddr address, std::span<const std::uint8_t> data);

  /// Returns the table of a forked child, whose memory contains the same int3s.
  [[nodiscard]] BreakpointTable copy_for(TraceeMemory& child) const;
  /// Takes over breakpoints of a process that has used the same memory, as far as their int3s are
  /// in it. Returns the addresses of those that this table did not have.
  std::vector<TraceeAddr> take_over(const BreakpointTable& other);
  /// Empties the table after exec, which discarded the int3s with the old program.
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
