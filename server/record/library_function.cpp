// SPDX-License-Identifier: Apache-2.0
#include "server/record/library_function.hpp"

#include <algorithm>
#include <cstring>

#include <elf.h>
#include <sys/sysmacros.h>

#include "ptrace/core/mapped_file.hpp"
#include "ptrace/os/process_files.hpp"

namespace backtrail::server {
namespace {

using Bytes = std::span<const std::uint8_t>;

template <typename T>
std::optional<T> read_at(Bytes bytes, std::uint64_t offset) {
  T out{};
  if (offset > bytes.size() || bytes.size() - offset < sizeof out) return std::nullopt;
  std::memcpy(&out, bytes.data() + offset, sizeof out);
  return out;
}

std::optional<Elf64_Shdr> section(Bytes file, const Elf64_Ehdr& header, std::uint64_t index) {
  if (index >= header.e_shnum) return std::nullopt;
  return read_at<Elf64_Shdr>(file, header.e_shoff + index * sizeof(Elf64_Shdr));
}

/// Returns the symbol's value in the file.
std::optional<std::uint64_t> symbol_value(Bytes file, const Elf64_Ehdr& header,
                                          std::string_view name) {
  for (std::uint64_t i = 0; i < header.e_shnum; ++i) {
    const auto table = section(file, header, i);
    if (!table || table->sh_type != SHT_DYNSYM) continue;
    const auto names = section(file, header, table->sh_link);
    if (!names) return std::nullopt;
    for (std::uint64_t at = 0; at + sizeof(Elf64_Sym) <= table->sh_size; at += sizeof(Elf64_Sym)) {
      const auto symbol = read_at<Elf64_Sym>(file, table->sh_offset + at);
      if (!symbol) return std::nullopt;
      const std::uint64_t begin = names->sh_offset + symbol->st_name;
      if (ELF64_ST_TYPE(symbol->st_info) != STT_FUNC || symbol->st_shndx == SHN_UNDEF ||
          begin > file.size() || file.size() - begin <= name.size()) {
        continue;
      }
      const auto* text = reinterpret_cast<const char*>(file.data() + begin);
      if (name == std::string_view{text, name.size()} && text[name.size()] == '\0') {
        return symbol->st_value;
      }
    }
  }
  return std::nullopt;
}

std::optional<std::uint64_t> file_offset(Bytes file, const Elf64_Ehdr& header,
                                         std::uint64_t value) {
  for (std::uint64_t i = 0; i < header.e_phnum; ++i) {
    const auto load = read_at<Elf64_Phdr>(file, header.e_phoff + i * sizeof(Elf64_Phdr));
    if (!load) return std::nullopt;
    if (load->p_type == PT_LOAD && load->p_vaddr <= value &&
        value - load->p_vaddr < load->p_filesz) {
      return value - load->p_vaddr + load->p_offset;
    }
  }
  return std::nullopt;
}

/// Returns the address in the process of a value in the file.
std::optional<TraceeAddr> place_of(Bytes file, const Elf64_Ehdr& header, std::uint64_t value,
                                   const std::string& path,
                                   std::span<const tracee::MapEntry> maps) {
  const auto offset = file_offset(file, header, value);
  if (!offset) return std::nullopt;
  for (const tracee::MapEntry& map : maps) {
    if (map.execute && map.path == path && *offset >= map.offset &&
        *offset - map.offset < map.end - map.start) {
      return TraceeAddr{map.start + (*offset - map.offset)};
    }
  }
  return std::nullopt;
}

/// Visits the functions of a symbol table, with their values in the file.
void visit_table(Bytes file, const Elf64_Ehdr& header, const Elf64_Shdr& table,
                 const std::function<void(std::string_view, std::uint64_t)>& take) {
  const auto names = section(file, header, table.sh_link);
  if (!names || names->sh_offset > file.size()) return;
  const Bytes texts =
      file.subspan(names->sh_offset, std::min(names->sh_size, file.size() - names->sh_offset));
  for (std::uint64_t at = 0; at + sizeof(Elf64_Sym) <= table.sh_size; at += sizeof(Elf64_Sym)) {
    const auto symbol = read_at<Elf64_Sym>(file, table.sh_offset + at);
    if (!symbol) return;
    if (ELF64_ST_TYPE(symbol->st_info) != STT_FUNC || symbol->st_shndx == SHN_UNDEF ||
        symbol->st_name >= texts.size()) {
      continue;
    }
    const auto* text = reinterpret_cast<const char*>(texts.data() + symbol->st_name);
    take({text, ::strnlen(text, texts.size() - symbol->st_name)}, symbol->st_value);
  }
}

}  // namespace

void visit_functions(const std::string& file, const std::string& path,
                     std::span<const tracee::MapEntry> maps,
                     const std::function<bool(std::string_view)>& wanted,
                     const std::function<void(std::string_view, TraceeAddr)>& take) {
  const auto mapped = tracee::MappedFile::open(file);
  if (!mapped) return;
  const Bytes bytes = mapped->bytes();
  const auto header = read_at<Elf64_Ehdr>(bytes, 0);
  if (!header || header->e_ident[EI_CLASS] != ELFCLASS64) return;
  for (std::uint64_t i = 0; i < header->e_shnum; ++i) {
    const auto table = section(bytes, *header, i);
    if (!table || (table->sh_type != SHT_SYMTAB && table->sh_type != SHT_DYNSYM)) continue;
    visit_table(bytes, *header, *table, [&](std::string_view name, std::uint64_t value) {
      if (!wanted(name)) return;
      if (const auto address = place_of(bytes, *header, value, path, maps)) take(name, *address);
    });
  }
}

std::optional<TraceeAddr> find_library_function(pid_t pid, std::span<const tracee::MapEntry> maps,
                                                std::string_view library,
                                                std::string_view function) {
  const auto is_it = [&](const tracee::MapEntry& map) {
    const std::string_view path{map.path};
    return map.execute && path.substr(path.rfind('/') + 1).starts_with(library);
  };
  const auto code = std::find_if(maps.begin(), maps.end(), is_it);
  if (code == maps.end()) return std::nullopt;
  // Overlay file systems may show two inode numbers for one file; then the name must do.
  const auto file = tracee::MappedFile::open(
      tracee::find_mapped_file(pid, code->path, code->inode,
                               makedev(code->device_major, code->device_minor))
          .value_or(code->path));
  if (!file) return std::nullopt;
  const auto header = read_at<Elf64_Ehdr>(file->bytes(), 0);
  if (!header || header->e_ident[EI_CLASS] != ELFCLASS64) return std::nullopt;
  const auto value = symbol_value(file->bytes(), *header, function);
  const auto offset = value ? file_offset(file->bytes(), *header, *value) : std::nullopt;
  if (!offset || *offset < code->offset || *offset - code->offset >= code->end - code->start) {
    return std::nullopt;
  }
  return TraceeAddr{code->start + (*offset - code->offset)};
}

}  // namespace backtrail::server
