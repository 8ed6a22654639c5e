// SPDX-License-Identifier: Apache-2.0
#include "decoder/symbols/elf_functions.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <span>
#include <string_view>
#include <utility>

#include <elfutils/libdwfl.h>
#include <gelf.h>

#include "arch/base/bytes.hpp"
#include "decoder/symbols/go_functions.hpp"

namespace backtrail::decoder {
namespace {

bool is_function(const GElf_Sym& symbol) {
  switch (GELF_ST_TYPE(symbol.st_info)) {
    case STT_FUNC:
    case STT_GNU_IFUNC:
    case STT_NOTYPE:
      return symbol.st_shndx != SHN_UNDEF && symbol.st_shndx != SHN_ABS;
    default:
      return false;
  }
}

int rank_of(const GElf_Sym& symbol) {
  constexpr int kTyped = 4;
  const int typed = GELF_ST_TYPE(symbol.st_info) == STT_NOTYPE ? 0 : kTyped;
  switch (GELF_ST_BIND(symbol.st_info)) {
    case STB_GLOBAL:
      return typed + 2;
    case STB_WEAK:
      return typed + 1;
    default:
      return typed;
  }
}

/// Returns true for the lazy-binding code that continues in the function that it found.
bool leads_on(std::string_view name) {
  return name.starts_with("_dl_runtime_resolve");
}

using Switch = std::pair<std::string_view, StackSwitch>;

/// Switches of Go programs: mcall() leaves a goroutine for the thread's own stack, gogo() continues
/// one. Source: go/src/runtime/asm_amd64.s.
constexpr auto kGoSwitches = std::to_array<Switch>({
    {"runtime.mcall", StackSwitch::kLeaves},
    {"runtime.mcall.abi0", StackSwitch::kLeaves},
    {"runtime.gogo", StackSwitch::kGoesOn},
    {"runtime.gogo.abi0", StackSwitch::kGoesOn},
    {"gogo", StackSwitch::kGoesOn},
});
/// Switches of C libraries, Boost.Context (also in PHP), Ruby and D.
constexpr auto kSwaps = std::to_array<Switch>({
    {"swapcontext", StackSwitch::kSwaps},
    {"__swapcontext", StackSwitch::kSwaps},
    {"jump_fcontext", StackSwitch::kSwaps},
    {"ontop_fcontext", StackSwitch::kSwaps},
    {"coroutine_transfer", StackSwitch::kSwaps},
    {"fiber_switchContext", StackSwitch::kSwaps},
});

bool is_go_switch(const CodeSymbol& symbol) {
  return symbol.name.starts_with(kGoSwitches.front().first);
}

void mark_switches(std::vector<CodeSymbol>& symbols) {
  const bool is_go = std::any_of(symbols.begin(), symbols.end(), is_go_switch);
  const std::span<const Switch> switches = is_go ? std::span<const Switch>{kGoSwitches} : kSwaps;
  for (CodeSymbol& symbol : symbols) {
    const auto found = std::find_if(switches.begin(), switches.end(),
                                    [&](const Switch& one) { return one.first == symbol.name; });
    if (found != switches.end()) symbol.stack_switch = found->second;
  }
}

std::vector<CodeSymbol> read_symbols(Dwfl_Module* module) {
  std::vector<CodeSymbol> out;
  const int count = dwfl_module_getsymtab(module);
  for (int i = 1; i < count; ++i) {
    GElf_Sym symbol{};
    GElf_Addr address = 0;
    const char* name =
        dwfl_module_getsym_info(module, i, &symbol, &address, nullptr, nullptr, nullptr);
    if (name == nullptr || *name == '\0' || !is_function(symbol)) continue;
    out.push_back({address, symbol.st_size, name, rank_of(symbol), leads_on(name)});
  }
  return out;
}

std::vector<CodeRange> code_ranges(Elf* elf, std::uint64_t bias) {
  std::vector<CodeRange> out;
  for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf, section)) != nullptr;) {
    GElf_Shdr header{};
    if (gelf_getshdr(section, &header) == nullptr) continue;
    if ((header.sh_flags & SHF_EXECINSTR) == 0 || (header.sh_flags & SHF_ALLOC) == 0) continue;
    out.push_back({header.sh_addr + bias, header.sh_addr + header.sh_size + bias});
  }
  if (!out.empty()) return out;
  std::size_t count = 0;
  elf_getphdrnum(elf, &count);
  for (std::size_t i = 0; i < count; ++i) {
    GElf_Phdr header{};
    if (gelf_getphdr(elf, static_cast<int>(i), &header) == nullptr) break;
    if (header.p_type != PT_LOAD || (header.p_flags & PF_X) == 0) continue;
    out.push_back({header.p_vaddr + bias, header.p_vaddr + header.p_memsz + bias});
  }
  return out;
}

}  // namespace

std::vector<std::uint64_t> unwind_starts(Elf* elf, std::uint64_t bias) {
  std::vector<std::uint64_t> out;
  std::size_t count = 0;
  elf_getphdrnum(elf, &count);
  for (std::size_t i = 0; i < count; ++i) {
    GElf_Phdr header{};
    if (gelf_getphdr(elf, static_cast<int>(i), &header) == nullptr) break;
    if (header.p_type != PT_GNU_EH_FRAME) continue;
    const Elf_Data* data = elf_getdata_rawchunk(elf, static_cast<std::int64_t>(header.p_offset),
                                                header.p_filesz, ELF_T_BYTE);
    // Layout: version 1, a pointer, a 4-byte count, pairs of 4-byte offsets from the header.
    constexpr std::size_t kTable = 12;
    constexpr std::size_t kPair = 8;
    if (data == nullptr || data->d_buf == nullptr || data->d_size < kTable) break;
    const auto* bytes = static_cast<const std::uint8_t*>(data->d_buf);
    if (bytes[0] != 1 || bytes[2] != 0x03 || bytes[3] != 0x3b) break;
    const std::size_t entries =
        std::min<std::size_t>(load_le<std::uint32_t>(bytes + 8), (data->d_size - kTable) / kPair);
    out.reserve(entries);
    for (std::size_t k = 0; k < entries; ++k) {
      const auto offset =
          static_cast<std::int32_t>(load_le<std::uint32_t>(bytes + kTable + k * kPair));
      out.push_back(header.p_vaddr + bias + static_cast<std::uint64_t>(std::int64_t{offset}));
    }
    break;
  }
  return out;
}

FunctionTable read_functions(Dwfl_Module* module) {
  std::vector<CodeSymbol> symbols = read_symbols(module);
  GElf_Addr bias = 0;
  Elf* elf = dwfl_module_getelf(module, &bias);
  if (elf == nullptr) return {};
  std::vector<std::uint64_t> starts = unwind_starts(elf, bias);
  std::vector<CodeSymbol> resolvers = lazy_resolvers(elf, bias, symbols, starts);
  if (std::none_of(symbols.begin(), symbols.end(), is_go_switch)) {
    const std::vector<CodeSymbol> of_go = go_functions_of(elf, bias);
    symbols.insert(symbols.end(), of_go.begin(), of_go.end());
  }
  mark_switches(symbols);
  for (auto& more : {plt_symbols(elf, bias, symbols), std::move(resolvers)}) {
    symbols.insert(symbols.end(), more.begin(), more.end());
  }
  return {std::move(symbols), std::move(starts), code_ranges(elf, bias)};
}

}  // namespace backtrail::decoder
