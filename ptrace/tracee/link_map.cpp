// SPDX-License-Identifier: Apache-2.0
#include "ptrace/tracee/link_map.hpp"

#include <algorithm>
#include <array>
#include <unordered_set>
#include <utility>

#include <elf.h>

namespace backtrail::tracee {
namespace {

// Bounds far above any real program, so that damaged memory cannot cause endless work.
constexpr std::size_t kMostObjects = 20'000;
constexpr std::size_t kMostNamespaces = 1'000;
constexpr std::size_t kMostHeaders = 1'000;
constexpr std::size_t kMostDynamics = 10'000;
constexpr std::size_t kLongestName = 4096;

// Reads memory as words of the program's size.
class Words {
 public:
  Words(const MemoryReader& memory, unsigned bytes) : memory_{memory}, bytes_{bytes} {}

  [[nodiscard]] unsigned bytes() const { return bytes_; }

  [[nodiscard]] std::optional<std::uint64_t> number(TraceeAddr at, unsigned size) const {
    std::array<std::uint8_t, 8> raw{};
    if (memory_(at, std::span{raw}.first(size)) != size) return std::nullopt;
    std::uint64_t value = 0;
    for (unsigned i = size; i-- > 0;) value = (value << 8U) | raw[i];
    return value;
  }
  /// Returns the index-th word of a structure of words.
  [[nodiscard]] std::optional<std::uint64_t> word(TraceeAddr at, unsigned index) const {
    return number(at + std::uint64_t{index} * bytes_, bytes_);
  }
  /// Returns a NUL-terminated string, cut at kLongestName; empty if unreadable.
  [[nodiscard]] std::string text(TraceeAddr at) const {
    std::string out;
    std::array<std::uint8_t, 64> piece{};
    while (out.size() < kLongestName) {
      const std::size_t got = memory_(at + out.size(), piece);
      const std::uint8_t* end = std::find(piece.data(), piece.data() + got, 0);
      out.append(std::as_const(piece).data(), end);
      if (end != piece.data() + got || got < piece.size()) break;
    }
    return out;
  }

 private:
  const MemoryReader& memory_;
  unsigned bytes_;
};

struct ProgramHeader {
  std::uint64_t type = 0;
  std::uint64_t address = 0;
};

std::optional<ProgramHeader> read_header(const Words& words, const AuxvFacts& facts,
                                         std::size_t index) {
  const TraceeAddr at = facts.program_headers + index * facts.program_header_bytes;
  const std::uint64_t address_offset =
      words.bytes() == 8 ? offsetof(Elf64_Phdr, p_vaddr) : offsetof(Elf32_Phdr, p_vaddr);
  const auto type = words.number(at, 4);
  const auto address = words.number(at + address_offset, words.bytes());
  if (!type || !address) return std::nullopt;
  return ProgramHeader{*type, *address};
}

// Returns the address of the program's dynamic section. The load bias is the difference between
// PT_PHDR's address and the real one; a program without PT_PHDR is not relocated.
std::optional<TraceeAddr> find_dynamic(const Words& words, const AuxvFacts& facts) {
  std::uint64_t bias = 0;
  std::optional<std::uint64_t> dynamic;
  const std::size_t count = std::min<std::uint64_t>(facts.program_header_count, kMostHeaders);
  for (std::size_t i = 0; i < count; ++i) {
    const auto header = read_header(words, facts, i);
    if (!header) break;
    if (header->type == PT_PHDR) bias = facts.program_headers.value() - header->address;
    if (header->type == PT_DYNAMIC) dynamic = header->address;
  }
  if (!dynamic) return std::nullopt;
  return TraceeAddr{*dynamic + bias};
}

// Returns the address of DT_DEBUG's value, which is 0 until the linker sets it; nullopt if there is
// no such tag.
std::optional<TraceeAddr> find_debug_pointer(const Words& words, TraceeAddr dynamic) {
  for (unsigned i = 0; i < kMostDynamics; ++i) {
    const auto tag = words.word(dynamic, 2 * i);
    if (!tag || *tag == DT_NULL) break;
    if (*tag != DT_DEBUG) continue;
    return dynamic + std::uint64_t{2 * i + 1} * words.bytes();
  }
  return std::nullopt;
}

// Word indices into struct r_debug (its int counts as a word) and struct link_map.
enum DebugWord : unsigned { kVersion = 0, kMap = 1, kNext = 5 };
enum MapWord : unsigned { kBias = 0, kName = 1, kDynamic = 2, kNextMap = 3 };

// Reads one namespace's chain. The first object of the program's own namespace becomes `main`.
void read_chain(const Words& words, TraceeAddr first, TraceeAddr id, bool own_namespace,
                std::unordered_set<TraceeAddr>& seen, LinkMapList& out) {
  bool at_main = own_namespace;
  for (TraceeAddr at = first; at != TraceeAddr{} && seen.size() < kMostObjects;) {
    if (!seen.insert(at).second) return;  // A cycle.
    const auto bias = words.word(at, kBias);
    const auto name = words.word(at, kName);
    const auto dynamic = words.word(at, kDynamic);
    const auto next = words.word(at, kNextMap);
    if (!bias || !name || !dynamic || !next) return;
    if (at_main) {
      out.main = at;
      at_main = false;
    } else if (std::string text = words.text(TraceeAddr{*name}); !text.empty()) {
      out.entries.push_back(
          LinkMapEntry{std::move(text), at, TraceeAddr{*bias}, TraceeAddr{*dynamic}, id});
    }
    at = TraceeAddr{*next};
  }
}

}  // namespace

AuxvFacts parse_auxv(std::span<const std::uint8_t> auxv, unsigned pointer_bytes) {
  AuxvFacts out;
  const auto word = [&](std::size_t at) {
    std::uint64_t value = 0;
    for (unsigned i = pointer_bytes; i-- > 0;) value = (value << 8U) | auxv[at + i];
    return value;
  };
  const std::size_t entry_bytes = std::size_t{2} * pointer_bytes;
  for (std::size_t at = 0; at + entry_bytes <= auxv.size(); at += entry_bytes) {
    const std::uint64_t value = word(at + pointer_bytes);
    switch (word(at)) {
      case AT_NULL:
        return out;
      case AT_PHDR:
        out.program_headers = TraceeAddr{value};
        break;
      case AT_PHNUM:
        out.program_header_count = value;
        break;
      case AT_PHENT:
        out.program_header_bytes = value;
        break;
      case AT_ENTRY:
        out.entry = TraceeAddr{value};
        break;
      case AT_BASE:
        out.interpreter_base = TraceeAddr{value};
        break;
      case AT_SYSINFO_EHDR:
        out.vdso = TraceeAddr{value};
        break;
      default:
        break;
    }
  }
  return out;
}

Result<LinkMapList> read_link_maps(const MemoryReader& memory, std::span<const std::uint8_t> auxv,
                                   unsigned pointer_bytes) {
  constexpr const char* kOperation = "find the dynamic linker's list";
  const AuxvFacts facts = parse_auxv(auxv, pointer_bytes);
  if (facts.program_headers == TraceeAddr{}) return fail(TraceErrc::kNotFound, kOperation);
  const Words words{memory, pointer_bytes};
  const auto dynamic = find_dynamic(words, facts);
  if (!dynamic) return fail(TraceErrc::kNotFound, kOperation);
  const auto pointer = find_debug_pointer(words, *dynamic);
  const auto debug = pointer ? words.word(*pointer, 0) : std::nullopt;
  if (!debug) return fail(TraceErrc::kNotFound, kOperation);

  LinkMapList out;
  out.debug_pointer = *pointer;
  const TraceeAddr own{*debug};
  std::unordered_set<TraceeAddr> maps;
  std::unordered_set<TraceeAddr> namespaces;
  for (TraceeAddr at = own;
       at != TraceeAddr{} && namespaces.size() < kMostNamespaces && namespaces.insert(at).second;) {
    const auto version = words.number(at, 4);
    const auto first = words.word(at, kMap);
    if (!version || *version == 0 || !first) break;  // The linker has not filled it in yet.
    read_chain(words, TraceeAddr{*first}, at, at == own, maps, out);
    if (*version < 2) break;
    const auto next = words.word(at, kNext);
    if (!next) break;
    at = TraceeAddr{*next};
  }
  return out;
}

}  // namespace backtrail::tracee
