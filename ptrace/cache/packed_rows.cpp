#include "ptrace/cache/packed_rows.hpp"

namespace backtrail::tracee::cache {
namespace {

using arch::x86::translate::PcRow;

/// The first byte of a row: what differs from the row before, and how far on it begins, if that
/// fits.
enum Difference : std::uint8_t { kPc = 1, kStack = 2, kPassed = 4, kFlags = 8 };
constexpr unsigned kDistanceShift = 4;
constexpr std::uint32_t kMostDistance = 15;

/// Seven bits a byte, the last one without the eighth.
void put(std::uint64_t value, std::vector<std::uint8_t>& out) {
  for (; value >= 0x80; value >>= 7U) out.push_back(static_cast<std::uint8_t>(value | 0x80U));
  out.push_back(static_cast<std::uint8_t>(value));
}

/// Small for small distances either way.
std::uint64_t fold(std::uint64_t distance) {
  return (distance << 1U) ^ (0 - (distance >> 63U));
}
std::uint64_t unfold(std::uint64_t folded) {
  return (folded >> 1U) ^ (0 - (folded & 1U));
}

class Reader {
 public:
  explicit Reader(std::span<const std::uint8_t> bytes) : rest_{bytes} {}
  [[nodiscard]] bool at_end() const { return rest_.empty(); }
  std::uint8_t byte() {
    if (rest_.empty()) return 0;
    const std::uint8_t value = rest_.front();
    rest_ = rest_.subspan(1);
    return value;
  }
  std::uint64_t number() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const std::uint8_t next = byte();
      value |= std::uint64_t{next & 0x7fU} << shift;
      if ((next & 0x80U) == 0) break;
    }
    return value;
  }

 private:
  std::span<const std::uint8_t> rest_;
};

PcRow next_row(Reader& from, PcRow row) {
  const std::uint8_t first = from.byte();
  const std::uint32_t distance = first >> kDistanceShift;
  row.offset += distance != 0 ? distance : static_cast<std::uint32_t>(from.number());
  if ((first & kPc) != 0) row.pc = row.pc + unfold(from.number());
  if ((first & kStack) != 0) row.stack_add = static_cast<std::int32_t>(unfold(from.number()));
  if ((first & kPassed) != 0) row.passed = static_cast<std::uint16_t>(from.number());
  if ((first & kFlags) != 0) row.flags = from.byte();
  return row;
}

}  // namespace

void pack_rows(std::span<const PcRow> rows, TraceeAddr head, std::vector<std::uint8_t>& out) {
  PcRow last{.pc = head};
  for (const PcRow& row : rows) {
    const std::uint32_t distance = row.offset - last.offset;
    const bool is_near = distance != 0 && distance <= kMostDistance;
    unsigned first = is_near ? distance << kDistanceShift : 0;
    if (row.pc != last.pc) first |= kPc;
    if (row.stack_add != last.stack_add) first |= kStack;
    if (row.passed != last.passed) first |= kPassed;
    if (row.flags != last.flags) first |= kFlags;
    out.push_back(static_cast<std::uint8_t>(first));
    if (!is_near) put(distance, out);
    if ((first & kPc) != 0) put(fold(row.pc - last.pc), out);
    if ((first & kStack) != 0) {
      put(fold(static_cast<std::uint64_t>(std::int64_t{row.stack_add})), out);
    }
    if ((first & kPassed) != 0) put(row.passed, out);
    if ((first & kFlags) != 0) out.push_back(row.flags);
    last = row;
  }
}

std::optional<PcRow> row_at(std::span<const std::uint8_t> packed, TraceeAddr head,
                            std::uint64_t offset) {
  Reader reader{packed};
  std::optional<PcRow> found;
  PcRow row{.pc = head};
  while (!reader.at_end()) {
    row = next_row(reader, row);
    if (row.offset > offset) break;
    found = row;
  }
  return found;
}

}  // namespace backtrail::tracee::cache
