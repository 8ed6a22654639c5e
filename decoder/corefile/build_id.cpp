// SPDX-License-Identifier: Apache-2.0
#include "decoder/corefile/build_id.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include <elf.h>

#include <fmt/format.h>

namespace backtrail::decoder {
namespace {

template <typename T>
bool read_at(std::span<const std::uint8_t> bytes, std::uint64_t offset, T& out) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof out) return false;
  std::memcpy(&out, bytes.data() + offset, sizeof out);
  return true;
}

std::string in_notes(std::span<const std::uint8_t> notes) {
  constexpr std::array<std::uint8_t, 4> kOwner{'G', 'N', 'U', 0};
  constexpr std::uint64_t kUnit = 4;
  const auto padded = [](std::uint64_t size) { return (size + kUnit - 1) / kUnit * kUnit; };
  Elf64_Nhdr note{};
  for (std::uint64_t at = 0; read_at(notes, at, note);) {
    const std::uint64_t name = at + sizeof note;
    const std::uint64_t desc = name + padded(note.n_namesz);
    if (desc > notes.size() || notes.size() - desc < note.n_descsz) return {};
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == kOwner.size() &&
        std::equal(kOwner.begin(), kOwner.end(),
                   notes.begin() + static_cast<std::ptrdiff_t>(name))) {
      std::string out;
      for (const std::uint8_t byte : notes.subspan(desc, note.n_descsz)) {
        out += fmt::format("{:02x}", byte);
      }
      return out;
    }
    at = desc + padded(note.n_descsz);
  }
  return {};
}

template <typename Header, typename Program>
std::string in_file(std::span<const std::uint8_t> elf) {
  Header header{};
  if (!read_at(elf, 0, header)) return {};
  for (std::uint64_t i = 0; i < header.e_phnum; ++i) {
    Program program{};
    if (!read_at(elf, header.e_phoff + i * sizeof program, program)) return {};
    if (program.p_type != PT_NOTE || program.p_offset > elf.size() ||
        elf.size() - program.p_offset < program.p_filesz) {
      continue;
    }
    std::string found = in_notes(elf.subspan(program.p_offset, program.p_filesz));
    if (!found.empty()) return found;
  }
  return {};
}

}  // namespace

std::string build_id_of(std::span<const std::uint8_t> elf) {
  if (elf.size() < EI_NIDENT || std::memcmp(elf.data(), ELFMAG, SELFMAG) != 0) return {};
  return elf[EI_CLASS] == ELFCLASS64 ? in_file<Elf64_Ehdr, Elf64_Phdr>(elf)
                                     : in_file<Elf32_Ehdr, Elf32_Phdr>(elf);
}

}  // namespace backtrail::decoder
