// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/program/program_kind.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include <gelf.h>

namespace backtrail::tracee::cache {
namespace {

using ElfHandle = std::unique_ptr<Elf, decltype(&elf_end)>;

/// No real program has a longer table.
constexpr std::size_t kMostEntries = 4096;
/// No library's name is longer. A program's table of names may have megabytes.
constexpr std::uint64_t kMostNameBytes = 4096;

class Program {
 public:
  explicit Program(Elf* elf) : elf_{elf} {
    std::size_t count = 0;
    if (elf_getphdrnum(elf, &count) != 0) return;
    for (std::size_t i = 0; i < count; ++i) {
      GElf_Phdr segment;
      if (gelf_getphdr(elf, static_cast<int>(i), &segment) == nullptr) return;
      segments_.push_back(segment);
    }
  }

  [[nodiscard]] std::string linker() const {
    const GElf_Phdr* segment = find(PT_INTERP);
    return segment == nullptr ? std::string{} : text(segment->p_offset, segment->p_filesz);
  }

  [[nodiscard]] std::string libraries() const {
    const GElf_Phdr* segment = find(PT_DYNAMIC);
    if (segment == nullptr) return {};
    Elf_Data* table = chunk(segment->p_offset, segment->p_filesz, ELF_T_DYN);
    if (table == nullptr) return {};
    std::vector<std::uint64_t> names;
    std::optional<std::uint64_t> strings;
    std::uint64_t string_bytes = 0;
    GElf_Dyn entry;
    for (std::size_t i = 0; i < kMostEntries; ++i) {
      if (gelf_getdyn(table, static_cast<int>(i), &entry) == nullptr || entry.d_tag == DT_NULL) {
        break;
      }
      if (entry.d_tag == DT_NEEDED) names.push_back(entry.d_un.d_val);
      if (entry.d_tag == DT_STRTAB) strings = offset_of(entry.d_un.d_ptr);
      if (entry.d_tag == DT_STRSZ) string_bytes = entry.d_un.d_val;
    }
    std::string all;
    for (const std::uint64_t name : names) {
      if (!strings || name >= string_bytes) return {};
      all += ' ' + text(*strings + name, string_bytes - name);
    }
    return all;
  }

 private:
  [[nodiscard]] const GElf_Phdr* find(GElf_Word type) const {
    for (const GElf_Phdr& segment : segments_) {
      if (segment.p_type == type) return &segment;
    }
    return nullptr;
  }
  [[nodiscard]] std::optional<std::uint64_t> offset_of(std::uint64_t address) const {
    for (const GElf_Phdr& segment : segments_) {
      if (segment.p_type == PT_LOAD && address >= segment.p_vaddr &&
          address - segment.p_vaddr < segment.p_filesz) {
        return segment.p_offset + (address - segment.p_vaddr);
      }
    }
    return std::nullopt;
  }
  /// Returns null if the file does not have these bytes.
  [[nodiscard]] Elf_Data* chunk(std::uint64_t offset, std::uint64_t bytes, Elf_Type type) const {
    return elf_getdata_rawchunk(elf_, static_cast<std::int64_t>(offset), bytes, type);
  }
  /// Returns the text up to its NUL.
  [[nodiscard]] std::string text(std::uint64_t offset, std::uint64_t most) const {
    const Elf_Data* data = chunk(offset, std::min(most, kMostNameBytes), ELF_T_BYTE);
    if (data == nullptr) return {};
    const std::string all{static_cast<const char*>(data->d_buf), data->d_size};
    return all.substr(0, all.find('\0'));
  }

  Elf* elf_;
  std::vector<GElf_Phdr> segments_;
};

}  // namespace

ProgramKind kind_of_program(int fd) {
  elf_version(EV_CURRENT);
  // Read instead of mapped, so that a file cut short meanwhile does no harm.
  const ElfHandle elf{elf_begin(fd, ELF_C_READ, nullptr), &elf_end};
  if (!elf || elf_kind(elf.get()) != ELF_K_ELF) return {};
  const Program program{elf.get()};
  return {.linker = program.linker(), .libraries = program.libraries()};
}

}  // namespace backtrail::tracee::cache
