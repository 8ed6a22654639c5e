// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Reads Intel PT with libipt, as gdb does, to check Backtrail's encoder.

#include <cstdint>
#include <iosfwd>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "decoder/trace/code_reader.hpp"

namespace backtrail::test {

/// An item of a decoded PT stream.
struct IptItem {
  enum class Kind : std::uint8_t {
    kInsn,   ///< The instruction at `address` was executed.
    kGap,    ///< Tracing stopped and resumed at another place, `address`.
    kLost,   ///< Packets were lost; tracing resumed at `address`.
    kError,  ///< libipt failed at `address` with code `error`.
  };
  Kind kind = Kind::kInsn;
  std::uint64_t address = 0;
  int error = 0;
  bool operator==(const IptItem&) const = default;
};
std::ostream& operator<<(std::ostream& out, const IptItem& item);

/// Decodes a whole stream from its first PSB on. After an error, decoding resumes at the next PSB.
/// If the stream does not state where the trace ends, the last item is an error.
[[nodiscard]] std::vector<IptItem> decode_ipt(std::span<const std::uint8_t> packets,
                                              decoder::CodeReader& code);

/// Returns the addresses of the executed instructions among `items`.
[[nodiscard]] std::vector<std::uint64_t> executed(std::span<const IptItem> items);

/// Returns the names of the packets, separated by spaces ("psb psbend mode pge tnt(101) tip pgd"),
/// without PADs.
[[nodiscard]] std::string packet_names(std::span<const std::uint8_t> packets);

/// Counts packets by kind with libipt's packet decoder, from the first PSB on; after an error, from
/// the next PSB. Names are those of decoder::to_string(PtKind).
[[nodiscard]] std::map<std::string, std::uint64_t> packet_counts(
    std::span<const std::uint8_t> packets);

/// Returns libipt's class of one instruction, for comparison with arch::decode_insn(): its name in
/// intel-pt.h without the prefix ("cond_jump"), or "error".
[[nodiscard]] std::string ipt_insn_class(arch::Isa isa, std::span<const std::uint8_t> bytes);

}  // namespace backtrail::test
