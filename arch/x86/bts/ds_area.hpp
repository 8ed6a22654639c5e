// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The debug store, to which an Intel CPU appends a record for every taken branch, as raw bytes.
///
///     save area      BTS base | index | maximum | threshold | PEBS the same four | PEBS reset
///     record         from | to | flags                          each as wide as a field
///     escape record  0 (from) | qualifier (8 bits) timestamp (56 bits) | unused
///
/// Software puts escape records among the hardware's records; a `from` of 0 is no branch. Source:
/// SDM vol. 3, "Debug Store (DS) Mechanism" and "BTS and DS Save Area".

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "arch/base/result.hpp"

namespace backtrail::arch::x86 {

/// The formats of the debug store.
enum class DsFormat : std::uint8_t {
  kNetBurst,    ///< Pentium 4 and relatives in 32-bit mode.
  kNetBurst64,  ///< Pentium 4 and relatives in 64-bit mode.
  kPentiumM,
  kCore2,  ///< Core 2 and all later CPUs, in both modes.
};

/// Returns "netburst", "netburst64", "pentium-m" or "core2".
[[nodiscard]] std::string_view to_string(DsFormat format);
[[nodiscard]] std::optional<DsFormat> ds_format_from(std::string_view name);
/// Returns the format by CPUID family and model of an Intel CPU; nullopt if it has no debug store.
[[nodiscard]] std::optional<DsFormat> ds_format_of(unsigned family, unsigned model, bool long_mode);

/// Bits of the DEBUGCTL MSR (0x1d9); 0 if the CPU lacks the bit.
struct DebugCtlBits {
  std::uint64_t trace;      ///< TR: send branch trace messages.
  std::uint64_t store;      ///< BTS: store them in memory.
  std::uint64_t interrupt;  ///< BTINT: interrupt at the end of the buffer instead of wrapping.
  std::uint64_t not_in_kernel = 0; /**< BTS_OFF_OS */
  std::uint64_t not_in_user = 0;   /**< BTS_OFF_USR */
};

struct DsLayout {
  std::size_t field_bytes;
  DebugCtlBits debugctl;
  /// Bit 4 of a record's third word is set if the branch was predicted.
  bool has_predicted_flag;

  [[nodiscard]] constexpr std::size_t record_bytes() const { return 3 * field_bytes; }
  /// Eight fields, and the reset value, which is always 64 bits wide.
  [[nodiscard]] constexpr std::size_t area_bytes() const { return 8 * field_bytes + 8; }
};
[[nodiscard]] const DsLayout& ds_layout(DsFormat format);

struct DsBuffer {
  std::uint64_t base = 0;
  std::uint64_t index = 0;      ///< Address of the next record.
  std::uint64_t maximum = 0;    ///< One past the end.
  std::uint64_t threshold = 0;  ///< An interrupt occurs when the index gets here.
};

struct DsArea {
  DsBuffer bts;
  DsBuffer pebs;
  std::uint64_t pebs_reset = 0;
};

/// Error kMalformed: too few bytes, or invalid BTS pointers (base <= index <= maximum must hold,
/// with the index at a record boundary).
[[nodiscard]] Result<DsArea> parse_ds_area(std::span<const std::uint8_t> bytes, DsFormat format);

/// A record's three words, zero-extended.
struct BtsWords {
  std::uint64_t from = 0;
  std::uint64_t to = 0;
  std::uint64_t flags = 0;
};
inline constexpr std::uint64_t kBtsPredicted = 0x10;

/// The type of a record, in the neutral form of the first interface (2007).
enum class BtsQualifier : std::uint8_t { kInvalid, kBranch, kTaskArrives, kTaskDeparts };

struct BtsEntry {
  BtsQualifier qualifier = BtsQualifier::kInvalid;
  std::uint64_t from = 0;
  std::uint64_t to = 0;
  std::optional<bool> predicted;  ///< Set if the format has the flag.
  std::uint64_t timestamp = 0;    ///< Time of a task mark; 56 bits.
  bool operator==(const BtsEntry&) const = default;
};

/// Reads the first record in `bytes`, which must contain a whole one.
[[nodiscard]] BtsEntry read_bts_entry(std::span<const std::uint8_t> bytes, DsFormat format);
/// Writes a record to `out`, which must have room for one.
void write_bts_entry(const BtsEntry& entry, DsFormat format, std::span<std::uint8_t> out);

}  // namespace backtrail::arch::x86
