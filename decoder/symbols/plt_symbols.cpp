// SPDX-License-Identifier: Apache-2.0
// Names PLT entries, which have no symbols, by their relocations.
#include <algorithm>
#include <map>
#include <string>

#include <gelf.h>

#include "arch/base/bytes.hpp"
#include "decoder/symbols/elf_functions.hpp"

namespace backtrail::decoder {
namespace {

/// Slots of the global offset table, with the function that fills each.
using Slots = std::map<std::uint64_t, std::string>;

struct Relocation {
  std::uint64_t offset = 0;
  std::uint64_t info = 0;
  std::uint64_t addend = 0;
};

class SlotReader {
 public:
  SlotReader(Elf* elf, std::uint64_t bias, const std::vector<CodeSymbol>& symbols)
      : elf_{elf}, bias_{bias}, symbols_{symbols} {}

  Slots read() {
    for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf_, section)) != nullptr;) {
      GElf_Shdr header{};
      if (gelf_getshdr(section, &header) == nullptr || (header.sh_flags & SHF_ALLOC) == 0) continue;
      if (header.sh_type != SHT_RELA && header.sh_type != SHT_REL) continue;
      if (header.sh_entsize != 0) read_section(section, header);
    }
    return std::move(slots_);
  }

 private:
  void read_section(Elf_Scn* section, const GElf_Shdr& header) {
    Elf_Data* data = elf_getdata(section, nullptr);
    if (data == nullptr) return;
    Elf_Data* names = nullptr;
    GElf_Shdr names_header{};
    if (Elf_Scn* table = elf_getscn(elf_, header.sh_link); table != nullptr) {
      names = elf_getdata(table, nullptr);
      gelf_getshdr(table, &names_header);
    }
    const auto count =
        static_cast<int>(std::min<std::uint64_t>(header.sh_size / header.sh_entsize, 1U << 22U));
    for (int i = 0; i < count; ++i) {
      Relocation relocation;
      if (header.sh_type == SHT_RELA) {
        GElf_Rela rela{};
        if (gelf_getrela(data, i, &rela) == nullptr) return;
        relocation = {rela.r_offset, rela.r_info, static_cast<std::uint64_t>(rela.r_addend)};
      } else {
        GElf_Rel rel{};
        if (gelf_getrel(data, i, &rel) == nullptr) return;
        relocation = {rel.r_offset, rel.r_info, 0};
      }
      take(relocation, names, names_header);
    }
  }

  void take(const Relocation& relocation, Elf_Data* names, const GElf_Shdr& names_header) {
    const auto index = static_cast<int>(GELF_R_SYM(relocation.info));
    if (index == 0) {
      const auto found = std::find_if(symbols_.begin(), symbols_.end(), [&](const CodeSymbol& s) {
        return relocation.addend != 0 && s.start == relocation.addend + bias_;
      });
      if (is_indirect(relocation) && found != symbols_.end())
        slots_[relocation.offset] = found->name;
      return;
    }
    GElf_Sym symbol{};
    if (names == nullptr || gelf_getsym(names, index, &symbol) == nullptr) return;
    const char* name = elf_strptr(elf_, names_header.sh_link, symbol.st_name);
    if (name != nullptr && *name != '\0') slots_[relocation.offset] = name;
  }

  [[nodiscard]] bool is_indirect(const Relocation& relocation) const {
    return gelf_getclass(elf_) == ELFCLASS64 ? GELF_R_TYPE(relocation.info) == R_X86_64_IRELATIVE
                                             : GELF_R_TYPE(relocation.info) == R_386_IRELATIVE;
  }

  Elf* elf_;
  std::uint64_t bias_;
  const std::vector<CodeSymbol>& symbols_;
  Slots slots_;
};

/// Returns the address of .got.plt, or else .got, which i386 PLT entries use as their base.
std::uint64_t offset_table(Elf* elf) {
  std::size_t names = 0;
  if (elf_getshdrstrndx(elf, &names) != 0) return 0;
  std::uint64_t found = 0;
  for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf, section)) != nullptr;) {
    GElf_Shdr header{};
    if (gelf_getshdr(section, &header) == nullptr) continue;
    const char* name = elf_strptr(elf, names, header.sh_name);
    if (name == nullptr) continue;
    const std::string_view text{name};
    if (text == ".got.plt") return header.sh_addr;
    if (text == ".got") found = header.sh_addr;
  }
  return found;
}

/// Returns the slot through which the entry at `address` jumps; 0 if it does not jump through one.
std::uint64_t slot_of(std::span<const std::uint8_t> entry, std::uint64_t address, bool wide,
                      std::uint64_t offsets) {
  constexpr std::size_t kJump = 6;  // FF /4 with a 4-byte displacement.
  for (std::size_t i = 0; i + kJump <= entry.size(); ++i) {
    if (entry[i] != 0xff || (entry[i + 1] != 0x25 && entry[i + 1] != 0xa3)) continue;
    const auto displacement = static_cast<std::uint64_t>(
        std::int64_t{static_cast<std::int32_t>(load_le<std::uint32_t>(entry.data() + i + 2))});
    if (entry[i + 1] == 0xa3) return wide ? 0 : (offsets + displacement) & 0xffff'ffffU;
    return wide ? address + i + kJump + displacement : displacement & 0xffff'ffffU;
  }
  return 0;
}

}  // namespace

std::vector<CodeSymbol> plt_symbols(Elf* elf, std::uint64_t bias,
                                    const std::vector<CodeSymbol>& symbols) {
  std::vector<CodeSymbol> out;
  std::size_t names = 0;
  if (elf_getshdrstrndx(elf, &names) != 0) return out;
  const Slots slots = SlotReader{elf, bias, symbols}.read();
  const bool wide = gelf_getclass(elf) == ELFCLASS64;
  const std::uint64_t offsets = wide ? 0 : offset_table(elf);
  for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf, section)) != nullptr;) {
    GElf_Shdr header{};
    if (gelf_getshdr(section, &header) == nullptr || header.sh_type != SHT_PROGBITS) continue;
    const char* name = elf_strptr(elf, names, header.sh_name);
    if (name == nullptr || !std::string_view{name}.starts_with(".plt")) continue;
    const Elf_Data* data = elf_rawdata(section, nullptr);
    if (data == nullptr || data->d_buf == nullptr) continue;
    const std::size_t size = header.sh_entsize == 8 ? 8 : 16;
    const std::span bytes{static_cast<const std::uint8_t*>(data->d_buf), data->d_size};
    for (std::size_t at = 0; at + size <= bytes.size(); at += size) {
      const std::uint64_t address = header.sh_addr + at;
      const auto slot = slots.find(slot_of(bytes.subspan(at, size), address, wide, offsets));
      constexpr int kRank = 9;
      out.push_back({address + bias, size, slot == slots.end() ? "[plt]" : slot->second + "@plt",
                     kRank, true});
    }
  }
  return out;
}

}  // namespace backtrail::decoder
