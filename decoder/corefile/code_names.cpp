// SPDX-License-Identifier: Apache-2.0
#include "decoder/corefile/code_names.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <utility>

#include "decoder/corefile/bytes.hpp"
#include "decoder/corefile/trace_blocks.hpp"

namespace backtrail::decoder {
namespace {

constexpr std::string_view kUsedAgain = " (or what was there before)";
/// Upper bound of an entry's size: the numbers beside a name take less than 32 bytes.
constexpr std::size_t kMostEntryBytes = kMostNameBytes + 32;

std::optional<std::uint64_t> take_hex(std::string_view& line) {
  if (line.starts_with("0x") || line.starts_with("0X")) line.remove_prefix(2);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), value, 16);
  if (error != std::errc{} || end == line.data() + line.size() || *end != ' ') return std::nullopt;
  line.remove_prefix(static_cast<std::size_t>(end - line.data()) + 1);
  return value;
}

std::optional<CodeName> parse_line(std::string_view line) {
  const auto start = take_hex(line);
  const auto size = start ? take_hex(line) : std::nullopt;
  if (!size || *size == 0 || *size > ~std::uint64_t{0} - *start || line.empty()) {
    return std::nullopt;
  }
  return CodeName{*start, *size, std::string{line.substr(0, kMostNameBytes)}};
}

/// Collects names of memory ranges that do not overlap.
class NamedMemory {
 public:
  /// Adds a name from a line older than all added so far: the part before the first newer range.
  void add_older(CodeName older) {
    const std::uint64_t end = older.start + older.size;
    auto next = names_.upper_bound(older.start);
    if (next != names_.begin() && end_of(std::prev(next)->second) > older.start) --next;
    for (; next != names_.end() && next->first < end; ++next) {
      CodeName& younger = next->second;
      if (younger.name != older.name && !younger.name.ends_with(kUsedAgain)) {
        younger.name += kUsedAgain;
      }
    }
    older.size = cover(older.start, end) - older.start;
    if (older.size != 0) names_.emplace(older.start, std::move(older));
  }
  std::vector<CodeName> take() {
    std::vector<CodeName> out;
    out.reserve(names_.size());
    for (auto& [start, name] : names_) out.push_back(std::move(name));
    return out;
  }

 private:
  static std::uint64_t end_of(const CodeName& name) { return name.start + name.size; }
  /// Marks [begin, end) as covered.
  /// @return The end of the leading part of [begin, end) that was not covered before.
  std::uint64_t cover(std::uint64_t begin, std::uint64_t end) {
    auto next = covered_.upper_bound(begin);
    if (next != covered_.begin() && std::prev(next)->second > begin) --next;
    const std::uint64_t free = next == covered_.end() ? end : std::clamp(next->first, begin, end);
    while (next != covered_.end() && next->first < end) {
      begin = std::min(begin, next->first);
      end = std::max(end, next->second);
      next = covered_.erase(next);
    }
    covered_.emplace(begin, end);
    return free;
  }

  std::map<std::uint64_t, CodeName> names_;
  std::map<std::uint64_t, std::uint64_t> covered_;  ///< Ranges of all lines so far: begin to end.
};

bool decode(std::span<const std::uint8_t> raw, std::vector<CodeName>& out) {
  ByteReader in{raw};
  const std::uint64_t count = in.varint();
  if (count > raw.size()) return false;
  std::uint64_t at = 0;
  for (std::uint64_t i = 0; i < count && in.good(); ++i) {
    CodeName name;
    const std::uint64_t gap = in.varint();
    name.start = at + gap;
    name.size = in.varint();
    if (name.start < gap || name.size > ~std::uint64_t{0} - name.start) return false;
    at = name.start + name.size;
    const auto text = in.take(in.varint());
    name.name.assign(text.begin(), text.end());
    out.push_back(std::move(name));
  }
  return in.good() && in.rest().empty();
}

}  // namespace

std::vector<CodeName> parse_perf_map(std::string_view text) {
  NamedMemory named;
  while (!text.empty()) {
    if (text.ends_with('\n')) text.remove_suffix(1);
    const std::size_t before = text.rfind('\n');
    const std::size_t begin = before == std::string_view::npos ? 0 : before + 1;
    if (auto name = parse_line(text.substr(begin))) named.add_older(std::move(*name));
    text = text.substr(0, begin);
  }
  return named.take();
}

void append_names(std::span<const CodeName> names, std::vector<std::uint8_t>& out) {
  for (std::uint64_t first = 0; !names.empty();) {
    ByteWriter entries;
    std::uint64_t at = 0;
    std::size_t count = 0;
    while (count < names.size() && entries.size() + 2 * kMostEntryBytes < kMaxRawBlockBytes) {
      const CodeName& name = names[count++];
      const std::string_view text = std::string_view{name.name}.substr(0, kMostNameBytes);
      entries.varint(name.start - at);
      entries.varint(name.size);
      entries.varint(text.size());
      entries.text(text);
      at = name.start + name.size;
    }
    ByteWriter raw;
    raw.varint(count);
    raw.put(entries.bytes());
    append_packed({.magic = kNamesMagic, .tid = 0, .records = kNamesVersion, .first = first},
                  raw.bytes(), out);
    names = names.subspan(count);
    first += count;
  }
}

Result<void> decode_names(const TraceBlock& block, std::vector<CodeName>& out) {
  if (block.records != kNamesVersion) {
    return fail(TraceErrc::kMalformed, "names of another version", block.records);
  }
  BT_TRY(const auto raw, unpack_block(block));
  const std::size_t before = out.size();
  if (!decode(raw, out)) {
    out.resize(before);
    return fail(TraceErrc::kMalformed, "read names of code", block.first);
  }
  return {};
}

}  // namespace backtrail::decoder
