// SPDX-License-Identifier: Apache-2.0
#include "ptrace/core/core_layout.hpp"

#include <algorithm>

#include <elf.h>

#include "arch/base/page.hpp"
#include "decoder/corefile/bytes.hpp"
#include "decoder/corefile/core_format.hpp"

namespace backtrail::tracee {
namespace {

using decoder::ByteWriter;

constexpr std::size_t kOwnSegments = 2;

struct Class64 {
  using Header = Elf64_Ehdr;
  using Program = Elf64_Phdr;
  using Section = Elf64_Shdr;
  static constexpr unsigned char kClass = ELFCLASS64;
  static constexpr std::uint16_t kMachine = EM_X86_64;
};
struct Class32 {
  using Header = Elf32_Ehdr;
  using Program = Elf32_Phdr;
  using Section = Elf32_Shdr;
  static constexpr unsigned char kClass = ELFCLASS32;
  static constexpr std::uint16_t kMachine = EM_386;
};

template <typename T>
void put(ByteWriter& out, const T& object) {
  out.put({reinterpret_cast<const std::uint8_t*>(&object), sizeof object});
}

/// Returns true if e_phnum cannot hold the number of segments.
bool needs_section(std::size_t segments) {
  return segments >= PN_XNUM;
}

template <typename Class>
typename Class::Program program(std::uint32_t type, const CoreLayout::Load& load,
                                std::uint64_t align) {
  typename Class::Program out{};
  out.p_type = type;
  out.p_flags = load.flags;
  out.p_offset = static_cast<decltype(out.p_offset)>(load.offset);
  out.p_vaddr = static_cast<decltype(out.p_vaddr)>(load.address);
  out.p_filesz = static_cast<decltype(out.p_filesz)>(load.file_bytes);
  out.p_memsz = static_cast<decltype(out.p_memsz)>(load.memory_bytes);
  out.p_align = static_cast<decltype(out.p_align)>(align);
  return out;
}

template <typename Class>
std::vector<std::uint8_t> make_headers(const CoreLayout& layout) {
  const std::size_t segments = layout.loads.size() + kOwnSegments;
  typename Class::Header header{};
  std::copy_n(ELFMAG, SELFMAG, header.e_ident);
  header.e_ident[EI_CLASS] = Class::kClass;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_CORE;
  header.e_machine = Class::kMachine;
  header.e_version = EV_CURRENT;
  header.e_ehsize = sizeof header;
  header.e_phoff = sizeof header;
  header.e_phentsize = sizeof(typename Class::Program);
  header.e_phnum = static_cast<std::uint16_t>(needs_section(segments) ? PN_XNUM : segments);
  if (needs_section(segments)) {
    header.e_shoff = static_cast<decltype(header.e_shoff)>(
        sizeof header + segments * sizeof(typename Class::Program));
    header.e_shentsize = sizeof(typename Class::Section);
    header.e_shnum = 1;
  }
  ByteWriter out;
  put(out, header);
  put(out, program<Class>(PT_NOTE, {0, 0, layout.notes_offset, layout.notes_bytes, 0}, 4));
  put(out, program<Class>(decoder::kTraceSegment,
                          {0, 0, layout.trace_offset, layout.trace_bytes, PF_R}, 1));
  for (const CoreLayout::Load& load : layout.loads) {
    put(out, program<Class>(PT_LOAD, load, kPageBytes));
  }
  if (needs_section(segments)) {
    typename Class::Section section{};
    section.sh_info = static_cast<std::uint32_t>(segments);
    put(out, section);
  }
  return {out.bytes().begin(), out.bytes().end()};
}

template <typename Class>
std::uint64_t bytes_of_headers(std::size_t loads) {
  const std::size_t segments = loads + kOwnSegments;
  return sizeof(typename Class::Header) + segments * sizeof(typename Class::Program) +
         (needs_section(segments) ? sizeof(typename Class::Section) : 0);
}

}  // namespace

std::uint64_t CoreLayout::header_bytes(arch::Isa isa, std::size_t loads) {
  return isa == arch::Isa::kAmd64 ? bytes_of_headers<Class64>(loads)
                                  : bytes_of_headers<Class32>(loads);
}

std::vector<std::uint8_t> CoreLayout::headers() const {
  return isa == arch::Isa::kAmd64 ? make_headers<Class64>(*this) : make_headers<Class32>(*this);
}

}  // namespace backtrail::tracee
