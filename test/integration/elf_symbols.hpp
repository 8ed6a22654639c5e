// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Symbols of an ELF file by name. Trusts the file.

#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include <elf.h>

#include <gtest/gtest.h>

#include "arch/base/address.hpp"
#include "arch/base/file_bytes.hpp"

namespace backtrail::tracee {

namespace detail {
template <typename T>
T read_at(const std::vector<std::uint8_t>& bytes, std::uint64_t offset) {
  T out{};
  if (offset + sizeof out <= bytes.size()) std::memcpy(&out, bytes.data() + offset, sizeof out);
  return out;
}

template <typename Ehdr, typename Shdr, typename Sym>
std::map<std::string, std::uint64_t> symbols(const std::vector<std::uint8_t>& bytes) {
  std::map<std::string, std::uint64_t> out;
  const auto header = read_at<Ehdr>(bytes, 0);
  for (unsigned i = 0; i < header.e_shnum; ++i) {
    const auto section = read_at<Shdr>(bytes, header.e_shoff + i * sizeof(Shdr));
    if (section.sh_type != SHT_SYMTAB && section.sh_type != SHT_DYNSYM) continue;
    const auto strings = read_at<Shdr>(bytes, header.e_shoff + section.sh_link * sizeof(Shdr));
    for (std::uint64_t at = 0; at + sizeof(Sym) <= section.sh_size; at += sizeof(Sym)) {
      const auto symbol = read_at<Sym>(bytes, section.sh_offset + at);
      if (symbol.st_shndx == SHN_UNDEF) continue;
      const auto* name = bytes.data() + strings.sh_offset + symbol.st_name;
      out.emplace(reinterpret_cast<const char*>(name), symbol.st_value);
    }
  }
  return out;
}
}  // namespace detail

/// Returns the defined symbols of both tables; empty if there is no such file.
[[nodiscard]] inline std::map<std::string, std::uint64_t> read_elf_symbols(
    const std::string& path) {
  const auto bytes = file_bytes(path).value_or(std::vector<std::uint8_t>{});
  if (bytes.size() < sizeof(Elf64_Ehdr)) return {};
  return bytes[EI_CLASS] == ELFCLASS64 ? detail::symbols<Elf64_Ehdr, Elf64_Shdr, Elf64_Sym>(bytes)
                                       : detail::symbols<Elf32_Ehdr, Elf32_Shdr, Elf32_Sym>(bytes);
}

/// Returns the address of a symbol in one of the test programs that are not position independent.
/// Returns 0 and fails the test if there is none.
[[nodiscard]] inline TraceeAddr symbol_of(const std::string& program, const std::string& symbol) {
  const auto symbols = read_elf_symbols(std::string{BT_INFERIOR_DIR} + "/" + program);
  const auto found = symbols.find(symbol);
  EXPECT_NE(found, symbols.end()) << "no symbol " << symbol << " in " << program;
  return TraceeAddr{found != symbols.end() ? found->second : 0};
}

}  // namespace backtrail::tracee
