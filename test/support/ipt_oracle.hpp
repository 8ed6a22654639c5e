#pragma once
/// @file
/// Reads Intel PT with libipt, as gdb does: the judge of our encoder.

#include <cstdint>
#include <iosfwd>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "decoder/trace/code_reader.hpp"

namespace backtrail::test {

/// What a PT stream says, item by item.
struct IptItem {
  enum class Kind : std::uint8_t {
    kInsn,   ///< The instruction at `address` was executed.
    kGap,    ///< Tracing stopped, and went on at `address`, another place.
    kLost,   ///< Packets were lost; tracing went on at `address`.
    kError,  ///< libipt could not go on at `address`; `error` is its code.
  };
  Kind kind = Kind::kInsn;
  std::uint64_t address = 0;
  int error = 0;
  bool operator==(const IptItem&) const = default;
};
std::ostream& operator<<(std::ostream& out, const IptItem& item);

/// Decodes a whole stream from its first PSB on. After an error decoding goes on at the next PSB.
/// A stream that does not say where the trace ends is an error at its last instruction.
[[nodiscard]] std::vector<IptItem> decode_ipt(std::span<const std::uint8_t> packets,
                                              decoder::CodeReader& code);

/// The addresses of the executed instructions among `items`.
[[nodiscard]] std::vector<std::uint64_t> executed(std::span<const IptItem> items);

/// The names of the packets, a space between ("psb psbend mode pge tnt(101) tip pgd"), for
/// failure messages and tests of form. PADs are left out.
[[nodiscard]] std::string packet_names(std::span<const std::uint8_t> packets);

/// How many packets of each kind, by libipt's packet decoder from the first PSB on; after an error
/// it goes on at the next PSB. Names as decoder::to_string(PtKind) has them.
[[nodiscard]] std::map<std::string, std::uint64_t> packet_counts(
    std::span<const std::uint8_t> packets);

/// libipt's view of one instruction's class, for comparing with arch::decode_insn: what its name
/// is in intel-pt.h, without the prefix ("cond_jump"), or "error".
[[nodiscard]] std::string ipt_insn_class(arch::Isa isa, std::span<const std::uint8_t> bytes);

}  // namespace backtrail::test
