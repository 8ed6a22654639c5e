// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/program/linked_module.hpp"

#include <cstdint>
#include <memory>
#include <string_view>

#include <fcntl.h>
#include <gelf.h>

#include "arch/base/page.hpp"
#include "decoder/symbols/elf_functions.hpp"
#include "ptrace/os/unique_fd.hpp"

namespace backtrail::tracee::cache {
namespace {

using ElfHandle = std::unique_ptr<Elf, decltype(&elf_end)>;

/// Returns what to add to the file's addresses for those in the range.
std::optional<std::uint64_t> bias_of(Elf* elf, const ExecutableMap::Range& range) {
  std::size_t count = 0;
  if (elf_getphdrnum(elf, &count) != 0) return std::nullopt;
  for (std::size_t i = 0; i < count; ++i) {
    GElf_Phdr segment;
    if (gelf_getphdr(elf, static_cast<int>(i), &segment) == nullptr) return std::nullopt;
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) continue;
    // Mappings begin at page boundaries, segments anywhere.
    const std::uint64_t begin = page_begin(segment.p_offset);
    const std::uint64_t end = segment.p_offset + segment.p_filesz;
    if (range.offset < begin || range.offset >= end) continue;
    return range.begin.value() - range.offset + segment.p_offset - segment.p_vaddr;
  }
  return std::nullopt;
}

class Reader {
 public:
  Reader(Elf* elf, std::uint64_t bias, const ExecutableMap::Range& range)
      : elf_{elf}, bias_{bias}, range_{range} {}

  LinkedModule read() {
    GElf_Ehdr header;
    if (gelf_getehdr(elf_, &header) == nullptr) return {};
    if (const TraceeAddr entry = here(header.e_entry); is_code(entry)) module_.entry = entry;
    for (const std::uint64_t start : decoder::unwind_starts(elf_, bias_)) {
      if (is_code(TraceeAddr{start})) module_.functions.emplace_back(start);
    }
    for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf_, section)) != nullptr;) {
      GElf_Shdr facts;
      if (gelf_getshdr(section, &facts) == nullptr) continue;
      if (facts.sh_type == SHT_DYNSYM) read_exports(section, facts);
      if (facts.sh_type == SHT_RELA && (facts.sh_flags & SHF_ALLOC) != 0) {
        read_relocations(section, facts);
      }
      if (facts.sh_type == SHT_INIT_ARRAY || facts.sh_type == SHT_FINI_ARRAY) {
        arrays_.emplace_back(here(facts.sh_addr), here(facts.sh_addr + facts.sh_size));
      }
      read_old_initializer(facts, header.e_shstrndx);
    }
    for (const auto& [at, to] : module_.pointers) {
      for (const auto& [begin, end] : arrays_) {
        if (begin <= at && at < end) module_.initializers.push_back(to);
      }
    }
    return std::move(module_);
  }

 private:
  [[nodiscard]] TraceeAddr here(std::uint64_t address) const { return TraceeAddr{address + bias_}; }
  [[nodiscard]] bool is_code(TraceeAddr address) const {
    return range_.begin <= address && address < range_.end;
  }

  /// Takes the functions .init and .fini.
  void read_old_initializer(const GElf_Shdr& facts, std::size_t names) {
    if (facts.sh_type != SHT_PROGBITS || (facts.sh_flags & SHF_EXECINSTR) == 0) return;
    const char* name = elf_strptr(elf_, names, facts.sh_name);
    if (name == nullptr) return;
    const std::string_view text{name};
    if (text == ".init" || text == ".fini") module_.initializers.push_back(here(facts.sh_addr));
  }

  void read_exports(Elf_Scn* section, const GElf_Shdr& facts) {
    symbols_ = elf_getdata(section, nullptr);
    strings_ = facts.sh_link;
    if (symbols_ == nullptr || facts.sh_entsize == 0) return;
    const auto count = static_cast<int>(facts.sh_size / facts.sh_entsize);
    GElf_Sym symbol;
    for (int i = 0; i < count && gelf_getsym(symbols_, i, &symbol) != nullptr; ++i) {
      const auto type = GELF_ST_TYPE(symbol.st_info);
      const bool is_function = type == STT_FUNC || type == STT_GNU_IFUNC;
      const char* name = elf_strptr(elf_, strings_, symbol.st_name);
      if (!is_function || symbol.st_shndx == SHN_UNDEF || name == nullptr) continue;
      if (is_code(here(symbol.st_value))) module_.exports.emplace_back(name, here(symbol.st_value));
    }
  }

  void read_relocations(Elf_Scn* section, const GElf_Shdr& facts) {
    Elf_Data* data = elf_getdata(section, nullptr);
    if (data == nullptr || facts.sh_entsize == 0) return;
    const auto count = static_cast<int>(facts.sh_size / facts.sh_entsize);
    GElf_Rela entry;
    for (int i = 0; i < count && gelf_getrela(data, i, &entry) != nullptr; ++i) {
      switch (GELF_R_TYPE(entry.r_info)) {
        case R_X86_64_RELATIVE:
        case R_X86_64_IRELATIVE: {
          const TraceeAddr to = here(static_cast<std::uint64_t>(entry.r_addend));
          if (is_code(to)) module_.pointers.emplace_back(here(entry.r_offset), to);
          break;
        }
        case R_X86_64_GLOB_DAT:
        case R_X86_64_JUMP_SLOT:
        case R_X86_64_64:
          read_import(entry);
          break;
        default:
          break;
      }
    }
  }

  void read_import(const GElf_Rela& entry) {
    GElf_Sym symbol;
    const auto index = static_cast<int>(GELF_R_SYM(entry.r_info));
    // The symbols come before the relocations that name them.
    if (symbols_ == nullptr || gelf_getsym(symbols_, index, &symbol) == nullptr) return;
    const char* name = elf_strptr(elf_, strings_, symbol.st_name);
    if (name != nullptr && *name != '\0') module_.imports.emplace_back(here(entry.r_offset), name);
  }

  Elf* elf_;
  std::uint64_t bias_;
  const ExecutableMap::Range& range_;
  Elf_Data* symbols_ = nullptr;
  std::size_t strings_ = 0;
  std::vector<std::pair<TraceeAddr, TraceeAddr>> arrays_;
  LinkedModule module_;
};

}  // namespace

LinkedModule read_linked_module(const std::string& path, const ExecutableMap::Range& range) {
  elf_version(EV_CURRENT);
  const UniqueFd file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (!file) return {};
  // Read instead of mapped, so that a file cut short meanwhile does no harm.
  const ElfHandle elf{elf_begin(file.get(), ELF_C_READ, nullptr), &elf_end};
  if (!elf || elf_kind(elf.get()) != ELF_K_ELF || gelf_getclass(elf.get()) != ELFCLASS64) return {};
  const auto bias = bias_of(elf.get(), range);
  return bias ? Reader{elf.get(), *bias, range}.read() : LinkedModule{};
}

}  // namespace backtrail::tracee::cache
