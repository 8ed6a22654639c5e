// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Watchpoints and hardware breakpoints as values of DR0-DR3, DR6 and DR7. Pure arithmetic. Source:
/// SDM vol. 3, "Debug Registers".

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "arch/base/address.hpp"
#include "arch/base/result.hpp"

namespace backtrail::arch::x86 {

enum class DebugAccess : std::uint8_t { kExecute = 0, kWrite = 1, kReadWrite = 3 };

/// The debug registers wanted for every thread of one process. Reference counted: inserting an
/// equal range twice uses one register.
class DebugRegisters {
 public:
  static constexpr std::size_t kSlots = 4;

  /// Watches [address, address + length). Unaligned or odd ranges are split over several slots.
  /// Errors: kBusy if four registers do not suffice (nothing changes then); kInvalidArgument if the
  /// length is 0, or not 1 for kExecute, or the range exceeds the address space.
  Result<void> insert(TraceeAddr address, std::uint64_t length, DebugAccess access);
  /// Error kNotFound: it was not inserted.
  Result<void> remove(TraceeAddr address, std::uint64_t length, DebugAccess access);

  [[nodiscard]] std::uint64_t address(std::size_t slot) const { return address_[slot]; }
  [[nodiscard]] std::uint64_t control() const { return control_; }  ///< DR7.
  [[nodiscard]] bool empty() const { return (control_ & 0xff) == 0; }

  /// Returns the data address or breakpoint whose slot fired according to DR6; nullopt if none did.
  /// Data has priority, because its access is done, while a breakpoint's instruction has yet to
  /// run. Slots that are not enabled are ignored.
  struct Hit {
    TraceeAddr address;
    DebugAccess access;
  };
  [[nodiscard]] std::optional<Hit> hit(std::uint64_t dr6) const;

 private:
  struct Range {
    TraceeAddr address;
    std::uint64_t length = 0;
    DebugAccess access = DebugAccess::kExecute;
    bool operator==(const Range&) const = default;
  };
  /// An inserted range and its reference count.
  struct Inserted {
    Range range;
    unsigned count = 0;
  };

  bool take_slot(const Range& aligned);
  void release_slot(const Range& aligned);
  [[nodiscard]] bool holds(std::size_t slot, const Range& aligned) const;

  std::array<std::uint64_t, kSlots> address_{};
  std::array<unsigned, kSlots> references_{};
  std::uint64_t control_ = 0;
  std::vector<Inserted> inserted_;
};

}  // namespace backtrail::arch::x86
