// SPDX-License-Identifier: Apache-2.0
#include "decoder/symbols/go_functions.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <gelf.h>

#include "arch/base/bytes.hpp"

namespace backtrail::decoder {
namespace {

using Bytes = std::span<const std::uint8_t>;

constexpr std::uint32_t kMagic116 = 0xfffffffa;
constexpr std::uint32_t kMagic118 = 0xfffffff0;
constexpr std::uint32_t kMagic120 = 0xfffffff1;
constexpr std::size_t kPointerSizeAt = 7;
constexpr std::uint8_t kPointerBytes = 8;
constexpr std::size_t kMostNameBytes = 4096;

template <typename T>
std::optional<T> read(Bytes bytes, std::uint64_t at) {
  if (at > bytes.size() || bytes.size() - at < sizeof(T)) return std::nullopt;
  return load_le<T>(bytes, at);
}

/// Header fields: 8-byte words from offset 8 on.
struct Header {
  std::uint64_t count = 0;
  std::uint64_t text = 0;       ///< Base of function addresses.
  std::uint64_t names = 0;      ///< Offset of the name table.
  std::uint64_t functions = 0;  ///< Offset of the function table.
  std::size_t field_bytes = 0;  ///< Size of each of an entry's two fields.
};

std::optional<Header> read_header(Bytes table, std::uint64_t text) {
  const auto magic = read<std::uint32_t>(table, 0);
  const auto pointer = read<std::uint8_t>(table, kPointerSizeAt);
  if (!magic || pointer != kPointerBytes) return std::nullopt;
  const auto word = [&](std::size_t index) {
    return read<std::uint64_t>(table, (index + 1) * kPointerBytes).value_or(0);
  };
  Header header{.count = word(0), .field_bytes = sizeof(std::uint32_t)};
  if (*magic == kMagic116) {
    header.names = word(2);
    header.functions = word(6);
    header.field_bytes = sizeof(std::uint64_t);
  } else if (*magic == kMagic118 || *magic == kMagic120) {
    // Filled in at load time in position-independent programs.
    header.text = word(2) != 0 ? word(2) : text;
    header.names = word(3);
    header.functions = word(7);
  } else {
    return std::nullopt;
  }
  if (header.names >= table.size() || header.functions >= table.size()) return std::nullopt;
  return header;
}

std::string name_at(Bytes table, std::uint64_t at) {
  if (at >= table.size()) return {};
  const Bytes rest = table.subspan(at, std::min<std::uint64_t>(table.size() - at, kMostNameBytes));
  return {rest.begin(), std::find(rest.begin(), rest.end(), 0)};
}

}  // namespace

std::vector<CodeSymbol> go_functions(Bytes table, std::uint64_t text) {
  std::vector<CodeSymbol> out;
  const auto header = read_header(table, text);
  if (!header) return out;
  const auto field = [&](std::uint64_t at) -> std::optional<std::uint64_t> {
    if (header->field_bytes == sizeof(std::uint64_t)) return read<std::uint64_t>(table, at);
    return read<std::uint32_t>(table, at);
  };
  const std::uint64_t entry_bytes = 2 * header->field_bytes;
  const std::uint64_t most = (table.size() - header->functions) / entry_bytes;
  for (std::uint64_t i = 0; i < std::min(header->count, most); ++i) {
    const std::uint64_t at = header->functions + i * entry_bytes;
    const auto begin = field(at);
    const auto facts = field(at + header->field_bytes);
    const auto end = field(at + entry_bytes);  // Start of the next entry, or the end of the table.
    if (!begin || !facts || !end || *end <= *begin || *facts >= table.size()) break;
    // A function's data begins with its entry, one field wide; the name offset follows.
    const auto name = read<std::uint32_t>(table, header->functions + *facts + header->field_bytes);
    if (!name) break;
    CodeSymbol symbol;
    symbol.start = header->text + *begin;
    symbol.size = *end - *begin;
    symbol.name = name_at(table, header->names + *name);
    if (!symbol.name.empty()) out.push_back(std::move(symbol));
  }
  return out;
}

std::vector<CodeSymbol> go_functions_of(Elf* elf, std::uint64_t bias) {
  std::size_t names = 0;
  if (elf_getshdrstrndx(elf, &names) != 0) return {};
  std::uint64_t text = 0;
  const Elf_Data* data = nullptr;
  for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf, section)) != nullptr;) {
    GElf_Shdr header{};
    if (gelf_getshdr(section, &header) == nullptr) continue;
    const char* name = elf_strptr(elf, names, header.sh_name);
    if (name == nullptr) continue;
    if (std::string_view{name} == ".text") text = header.sh_addr;
    // Position-independent programs name it .data.rel.ro.gopclntab.
    if (std::string_view{name}.ends_with(".gopclntab")) data = elf_rawdata(section, nullptr);
  }
  if (data == nullptr || data->d_buf == nullptr) return {};
  auto functions =
      go_functions({static_cast<const std::uint8_t*>(data->d_buf), data->d_size}, text);
  for (CodeSymbol& function : functions) function.start += bias;
  return functions;
}

}  // namespace backtrail::decoder
