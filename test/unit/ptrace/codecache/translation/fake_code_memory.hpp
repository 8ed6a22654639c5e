// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Memory for translations that no program sees.

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "arch/x86/translate/layout.hpp"
#include "ptrace/codecache/memory/code_memory.hpp"

namespace backtrail::tracee::cache {

/// An entry table on plain memory.
class FakeEntries {
 public:
  [[nodiscard]] EntryTable& table() { return table_; }

 private:
  static std::uint8_t* bytes(void* of) { return static_cast<std::uint8_t*>(of); }

  std::vector<std::uint64_t> first_ =
      std::vector<std::uint64_t>(arch::x86::translate::kTableEntries);
  std::vector<std::uint64_t> more_ = std::vector<std::uint64_t>(
      arch::x86::translate::kMostTableEntries - arch::x86::translate::kTableEntries);
  std::uint32_t mask_ = 0;
  EntryTable table_{bytes(first_.data()), bytes(more_.data()), bytes(&mask_)};
};

class FakeCodeMemory : public CodeMemory {
 public:
  static constexpr std::uint64_t kBytes = 1ULL << 18;

  explicit FakeCodeMemory(std::uint64_t bytes = kBytes) : code_(bytes) {}

  [[nodiscard]] TraceeAddr code() const override { return TraceeAddr{0x1000'0000}; }
  [[nodiscard]] TraceeAddr table() const override { return TraceeAddr{0x2000'0000}; }
  [[nodiscard]] std::span<std::uint8_t> host_code() const override { return code_; }
  [[nodiscard]] EntryTable& entries() override { return entries_.table(); }
  void fill_table(TraceeAddr target) override { entries().fill(target); }
  void fill_code(std::span<const std::uint8_t> code) override {
    std::copy(code.begin(), code.end(), code_.begin());
  }
  void leave_code(LeftCode left) override { left_ = std::move(left); }
  [[nodiscard]] const LeftCode& left() const { return left_; }
  void settle_code(std::uint64_t end) override { settled_ = end; }
  void settle_first() override { settled_first_ = true; }
  [[nodiscard]] bool settled_first() const { return settled_first_; }
  [[nodiscard]] std::uint64_t settled() const { return settled_; }

 private:
  mutable std::vector<std::uint8_t> code_;
  FakeEntries entries_;
  LeftCode left_;
  std::uint64_t settled_ = 0;
  bool settled_first_ = false;
};

}  // namespace backtrail::tracee::cache
