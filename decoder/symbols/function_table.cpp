// SPDX-License-Identifier: Apache-2.0
#include "decoder/symbols/function_table.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace backtrail::decoder {
namespace {

std::size_t underscores(const std::string& name) {
  return std::min(name.find_first_not_of('_'), name.size());
}

/// Orders symbols by address, and those at one address by how well people know the name.
bool better(const CodeSymbol& a, const CodeSymbol& b) {
  const auto key = [](const CodeSymbol& symbol) {
    return std::tuple{symbol.size == 0, -symbol.rank, underscores(symbol.name), symbol.name.size()};
  };
  return std::tie(a.start) < std::tie(b.start) ||
         (a.start == b.start && (key(a) < key(b) || (key(a) == key(b) && a.name < b.name)));
}

bool in_order(const FunctionTable::Entry& a, const FunctionTable::Entry& b) {
  return a.start < b.start;
}

/// Returns "f" for "f.cold" and "f.cold.3"; else an empty string.
std::string part_of(const std::string& name) {
  const std::size_t at = name.find(".cold");
  if (at == std::string::npos || at == 0) return {};
  return name.substr(0, at);
}

}  // namespace

FunctionTable::FunctionTable(std::vector<CodeSymbol> symbols, std::vector<std::uint64_t> starts,
                             std::vector<CodeRange> code)
    : code_{std::move(code)} {
  std::sort(code_.begin(), code_.end(),
            [](const CodeRange& a, const CodeRange& b) { return a.start < b.start; });
  add_symbols(std::move(symbols));
  add_nameless(std::move(starts));
  find_owners();
}

/// Returns the end of the code range at `address`; 0 if there is none.
std::uint64_t FunctionTable::code_end(std::uint64_t address) const {
  const auto after =
      std::upper_bound(code_.begin(), code_.end(), address,
                       [](std::uint64_t at, const CodeRange& range) { return at < range.start; });
  if (after == code_.begin() || address >= std::prev(after)->end) return 0;
  return std::prev(after)->end;
}

void FunctionTable::add_symbols(std::vector<CodeSymbol> symbols) {
  std::erase_if(symbols, [this](const CodeSymbol& symbol) { return code_end(symbol.start) == 0; });
  std::sort(symbols.begin(), symbols.end(), better);
  std::uint64_t covered = 0;
  for (CodeSymbol& symbol : symbols) {
    if (!entries_.empty() && entries_.back().start == symbol.start) continue;
    // A label within a function is not a function.
    if (symbol.size == 0 && symbol.start < covered) continue;
    if (!entries_.empty()) entries_.back().end = std::min(entries_.back().end, symbol.start);
    const std::uint64_t end = code_end(symbol.start);
    const bool sized = symbol.size != 0 && symbol.size < end - symbol.start;
    entries_.push_back({symbol.start, sized ? symbol.start + symbol.size : end,
                        std::move(symbol.name), symbol.stub, symbol.stack_switch, 0});
    if (symbol.size != 0) covered = std::max(covered, entries_.back().end);
  }
}

void FunctionTable::add_nameless(std::vector<std::uint64_t> starts) {
  std::sort(starts.begin(), starts.end());
  const std::size_t named = entries_.size();
  const auto next_named = [&](std::uint64_t address) {
    return std::upper_bound(entries_.begin(), entries_.begin() + static_cast<std::ptrdiff_t>(named),
                            address,
                            [](std::uint64_t at, const Entry& entry) { return at < entry.start; });
  };
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const std::uint64_t start = starts[i];
    std::uint64_t end = code_end(start);
    if (end == 0 || (i != 0 && starts[i - 1] == start)) continue;
    const auto next = next_named(start);
    if (next != entries_.begin() && start < std::prev(next)->end) continue;
    if (next != entries_.begin() + static_cast<std::ptrdiff_t>(named)) {
      end = std::min(end, next->start);
    }
    const auto following = std::upper_bound(starts.begin(), starts.end(), start);
    if (following != starts.end()) end = std::min(end, *following);
    entries_.push_back({start, end, {}, false, StackSwitch::kNone, 0});
  }
  std::sort(entries_.begin(), entries_.end(), in_order);
}

void FunctionTable::find_owners() {
  std::map<std::string, std::vector<std::uint32_t>> by_name;
  bool parts = false;
  for (std::uint32_t i = 0; i < entries_.size(); ++i) {
    entries_[i].owner = i;
    parts = parts || !part_of(entries_[i].name).empty();
  }
  if (!parts) return;
  for (std::uint32_t i = 0; i < entries_.size(); ++i) by_name[entries_[i].name].push_back(i);
  for (Entry& entry : entries_) {
    const std::string whole = part_of(entry.name);
    if (whole.empty()) continue;
    const auto found = by_name.find(whole);
    // If several static functions share the name, the owner is unknown.
    if (found != by_name.end() && found->second.size() == 1) entry.owner = found->second.front();
  }
}

const FunctionTable::Entry* FunctionTable::find(std::uint64_t address) const {
  const auto after =
      std::upper_bound(entries_.begin(), entries_.end(), address,
                       [](std::uint64_t at, const Entry& entry) { return at < entry.start; });
  if (after == entries_.begin() || address >= std::prev(after)->end) return nullptr;
  return &*std::prev(after);
}

}  // namespace backtrail::decoder
