#pragma once
/// @file
/// The debug store: where an Intel CPU appends one record for every taken branch, as raw bytes.
///
///     save area      BTS base | index | maximum | threshold | PEBS the same four | PEBS reset
///     record         from | to | flags                          each as wide as a field
///     escape record  0 (from) | qualifier (8 bits) timestamp (56 bits) | unused
///
/// An escape record is what software puts among the hardware's: a from of 0 is no branch.
/// Source: SDM vol. 3, "Debug Store (DS) Mechanism" and "BTS and DS Save Area".

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "arch/base/result.hpp"

namespace backtrail::arch::x86 {

/// The forms in which the debug store exists.
enum class DsFormat : std::uint8_t {
  kNetBurst,    ///< Pentium 4 and its kin in 32-bit mode.
  kNetBurst64,  ///< The same in 64-bit mode.
  kPentiumM,
  kCore2,  ///< Core 2 and everything after it, in both modes.
};

/// "netburst", "netburst64", "pentium-m", "core2".
[[nodiscard]] std::string_view to_string(DsFormat format);
[[nodiscard]] std::optional<DsFormat> ds_format_from(std::string_view name);
/// By CPUID family and model of an Intel CPU; nothing when it has no debug store.
[[nodiscard]] std::optional<DsFormat> ds_format_of(unsigned family, unsigned model, bool long_mode);

/// Bits of the DEBUGCTL MSR (0x1d9); 0 where the CPU has no such bit.
struct DebugCtlBits {
  std::uint64_t trace;             ///< TR: send branch trace messages.
  std::uint64_t store;             ///< BTS: to memory.
  std::uint64_t interrupt;         ///< BTINT: stop at the end and interrupt, instead of wrapping.
  std::uint64_t not_in_kernel = 0; /**< BTS_OFF_OS */
  std::uint64_t not_in_user = 0;   /**< BTS_OFF_USR */
};

struct DsLayout {
  std::size_t field_bytes;
  DebugCtlBits debugctl;
  /// Bit 4 of a record's third word says "was predicted".
  bool has_predicted_flag;

  [[nodiscard]] constexpr std::size_t record_bytes() const { return 3 * field_bytes; }
  /// Eight fields and the reset value, which is always 64 bits wide.
  [[nodiscard]] constexpr std::size_t area_bytes() const { return 8 * field_bytes + 8; }
};
[[nodiscard]] const DsLayout& ds_layout(DsFormat format);

struct DsBuffer {
  std::uint64_t base = 0;
  std::uint64_t index = 0;      ///< Where the next record goes.
  std::uint64_t maximum = 0;    ///< One past the end.
  std::uint64_t threshold = 0;  ///< The interrupt comes when the index gets here.
};

struct DsArea {
  DsBuffer bts;
  DsBuffer pebs;
  std::uint64_t pebs_reset = 0;
};

/// Error kMalformed when the bytes are too few, or the BTS pointers are not those of a buffer
/// (base <= index <= maximum, index on a record).
[[nodiscard]] Result<DsArea> parse_ds_area(std::span<const std::uint8_t> bytes, DsFormat format);

/// A record's three words, widened.
struct BtsWords {
  std::uint64_t from = 0;
  std::uint64_t to = 0;
  std::uint64_t flags = 0;
};
inline constexpr std::uint64_t kBtsPredicted = 0x10;

/// What stands in a record, in the neutral form of the first interface (2007).
enum class BtsQualifier : std::uint8_t { kInvalid, kBranch, kTaskArrives, kTaskDeparts };

struct BtsEntry {
  BtsQualifier qualifier = BtsQualifier::kInvalid;
  std::uint64_t from = 0;
  std::uint64_t to = 0;
  std::optional<bool> predicted;  ///< Where the CPU says so.
  std::uint64_t timestamp = 0;    ///< Of the two task marks; 56 bits.
  bool operator==(const BtsEntry&) const = default;
};

/// The record at the front of `bytes`, which hold a whole one.
[[nodiscard]] BtsEntry read_bts_entry(std::span<const std::uint8_t> bytes, DsFormat format);
/// The other way; `out` has room for a record.
void write_bts_entry(const BtsEntry& entry, DsFormat format, std::span<std::uint8_t> out);

}  // namespace backtrail::arch::x86
