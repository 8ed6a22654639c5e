// SPDX-License-Identifier: Apache-2.0
// Recognises the dynamic linker's lazy-binding code if its debug file is missing.
#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include <gelf.h>

#include "decoder/symbols/elf_functions.hpp"

namespace backtrail::decoder {
namespace {

using CodeView = std::span<const std::uint8_t>;

/// The first and last instructions of glibc's _dl_runtime_resolve on an architecture
/// (sysdeps/x86_64/dl-trampoline.h, sysdeps/i386/dl-trampoline.S).
struct Shape {
  std::array<std::uint8_t, 7> begin;
  std::array<std::uint8_t, 3> end;
  std::size_t begin_bytes;
};
/// push %rbx; mov %rsp,%rbx; and $-16 or -64,%rsp ... jmp *%r11
constexpr Shape kAmd64{{0x53, 0x48, 0x89, 0xe3, 0x48, 0x83, 0xe4}, {0x41, 0xff, 0xe3}, 7};
/// push %eax; push %ecx; push %edx ... ret $12
constexpr Shape kI386{{0x50, 0x51, 0x52}, {0xc2, 0x0c, 0x00}, 3};

constexpr std::size_t kMostBytes = 512;

/// Returns the code from `address` (in the file) to the end of its section.
CodeView code_at(Elf* elf, std::uint64_t address) {
  for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf, section)) != nullptr;) {
    GElf_Shdr header{};
    if (gelf_getshdr(section, &header) == nullptr) continue;
    if ((header.sh_flags & SHF_EXECINSTR) == 0 || header.sh_type == SHT_NOBITS) continue;
    if (address < header.sh_addr || address - header.sh_addr >= header.sh_size) continue;
    const Elf_Data* data = elf_rawdata(section, nullptr);
    const std::uint64_t offset = address - header.sh_addr;
    if (data == nullptr || data->d_buf == nullptr || offset >= data->d_size) return {};
    return CodeView{static_cast<const std::uint8_t*>(data->d_buf), data->d_size}.subspan(offset);
  }
  return {};
}

bool has_shape(CodeView code, const Shape& shape) {
  constexpr std::array<std::uint8_t, 4> kEndbr64{0xf3, 0x0f, 0x1e, 0xfa};
  constexpr std::array<std::uint8_t, 4> kEndbr32{0xf3, 0x0f, 0x1e, 0xfb};
  const auto begins_with = [&](CodeView with) {
    return code.size() >= with.size() && std::equal(with.begin(), with.end(), code.begin());
  };
  if (begins_with(kEndbr64) || begins_with(kEndbr32)) code = code.subspan(kEndbr64.size());
  return begins_with(CodeView{shape.begin}.first(shape.begin_bytes)) &&
         std::search(code.begin(), code.end(), shape.end.begin(), shape.end.end()) != code.end();
}

}  // namespace

std::vector<CodeSymbol> lazy_resolvers(Elf* elf, std::uint64_t bias,
                                       const std::vector<CodeSymbol>& symbols,
                                       const std::vector<std::uint64_t>& starts) {
  std::vector<CodeSymbol> out;
  // Every dynamic linker of glibc exports this; i386's also with one more underscore.
  const bool is_linker = std::any_of(symbols.begin(), symbols.end(), [](const CodeSymbol& symbol) {
    return symbol.name.starts_with("__tls_get_addr");
  });
  if (!is_linker) return out;
  const Shape& shape = gelf_getclass(elf) == ELFCLASS64 ? kAmd64 : kI386;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const std::uint64_t start = starts[i];
    const std::uint64_t room = i + 1 < starts.size() ? starts[i + 1] - start : kMostBytes;
    CodeView code = code_at(elf, start - bias);
    code = code.first(std::min<std::size_t>({code.size(), room, kMostBytes}));
    if (!has_shape(code, shape)) continue;
    const bool named = std::any_of(symbols.begin(), symbols.end(),
                                   [&](const CodeSymbol& symbol) { return symbol.start == start; });
    if (!named) out.push_back({start, code.size(), "_dl_runtime_resolve", 0, true});
  }
  return out;
}

}  // namespace backtrail::decoder
