#pragma once
/// @file
/// DR0-DR3, DR6, DR7: watchpoints and hardware breakpoints as register values. Pure arithmetic.
/// Source: SDM vol. 3, "Debug Registers".

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "arch/base/address.hpp"
#include "arch/base/result.hpp"

namespace backtrail::arch::x86 {

enum class DebugAccess : std::uint8_t { kExecute = 0, kWrite = 1, kReadWrite = 3 };

/// The debug registers wanted for every thread of one process. Reference counted: inserting the
/// same thing twice uses one register.
class DebugRegisters {
 public:
  static constexpr std::size_t kSlots = 4;

  /// Watches [address, address + length). Unaligned or odd ranges are split over several slots.
  /// Errors: kBusy when the four registers do not suffice (nothing is changed then);
  /// kInvalidArgument when length is 0, or not 1 for kExecute, or the range passes the end of the
  /// address space.
  Result<void> insert(TraceeAddr address, std::uint64_t length, DebugAccess access);
  /// Error kNotFound when it was not inserted.
  Result<void> remove(TraceeAddr address, std::uint64_t length, DebugAccess access);

  [[nodiscard]] std::uint64_t address(std::size_t slot) const { return address_[slot]; }
  [[nodiscard]] std::uint64_t control() const { return control_; }  ///< DR7.
  [[nodiscard]] bool empty() const { return (control_ & 0xff) == 0; }

  /// The data address or breakpoint whose slot DR6 says has fired. Of several, data comes first:
  /// the access is done, while the instruction of a breakpoint has yet to run. DR6 may name slots
  /// that are not enabled; those are ignored.
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
  /// A range that is inserted, and how often.
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
