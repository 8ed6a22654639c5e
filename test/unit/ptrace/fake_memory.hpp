// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A fake memory with one mapped range.

#include <algorithm>
#include <utility>
#include <vector>

#include "ptrace/tracee/tracee_memory.hpp"

namespace backtrail::tracee {

class FakeMemory final : public TraceeMemory {
 public:
  FakeMemory(TraceeAddr base, std::vector<std::uint8_t> bytes)
      : base_{base}, bytes_{std::move(bytes)} {}

  std::size_t read(TraceeAddr address, std::span<std::uint8_t> out) override {
    const std::uint64_t index = address - base_;
    if (index >= bytes_.size()) return 0;
    const std::size_t count = std::min<std::size_t>(out.size(), bytes_.size() - index);
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(index), count, out.begin());
    return count;
  }
  Result<void> write(TraceeAddr address, std::span<const std::uint8_t> data) override {
    const std::uint64_t index = address - base_;
    if (read_only_ || index >= bytes_.size() || data.size() > bytes_.size() - index)
      return fail(TraceErrc::kUnreadable, "write fake memory", address.value());
    std::copy(data.begin(), data.end(), bytes_.begin() + static_cast<std::ptrdiff_t>(index));
    return {};
  }

  [[nodiscard]] std::uint8_t at(TraceeAddr address) const { return bytes_.at(address - base_); }
  void set(TraceeAddr address, std::uint8_t value) { bytes_.at(address - base_) = value; }
  void set_read_only(bool on) { read_only_ = on; }
  void unmap() { bytes_.clear(); }

 private:
  TraceeAddr base_;
  std::vector<std::uint8_t> bytes_;
  bool read_only_ = false;
};

}  // namespace backtrail::tracee
