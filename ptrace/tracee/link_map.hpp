// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The dynamic linker's list of loaded objects, read from memory.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "arch/base/result.hpp"
#include "ptrace/tracee/tracee_memory.hpp"

namespace backtrail::tracee {

/// One entry of the dynamic linker's list.
struct LinkMapEntry {
  std::string name;
  TraceeAddr link_map;
  TraceeAddr load_bias;     ///< l_addr.
  TraceeAddr dynamic;       ///< l_ld.
  TraceeAddr namespace_id;  ///< lmid: address of the namespace's r_debug.
  bool operator==(const LinkMapEntry&) const = default;
};
struct LinkMapList {
  std::optional<TraceeAddr> main;  ///< link_map of the program itself, which `entries` omits.
  TraceeAddr debug_pointer;        ///< Address of DT_DEBUG's value, a pointer to struct r_debug.
  std::vector<LinkMapEntry> entries;
};

/// Values that the kernel passed to the program in its auxiliary vector.
struct AuxvFacts {
  TraceeAddr program_headers;  ///< AT_PHDR; 0 = absent.
  std::uint64_t program_header_count = 0;
  std::uint64_t program_header_bytes = 0;  ///< Size of one header.
  TraceeAddr entry;                        ///< AT_ENTRY.
  TraceeAddr interpreter_base;             ///< AT_BASE; 0 for static programs.
  TraceeAddr vdso;                         ///< AT_SYSINFO_EHDR.
};
/// Parses up to AT_NULL or the end. `pointer_bytes` is 4 or 8.
[[nodiscard]] AuxvFacts parse_auxv(std::span<const std::uint8_t> auxv, unsigned pointer_bytes);

/// Reads the lists of all namespaces. Entries without a name are omitted, and so is the main
/// program (see LinkMapList::main). Bounded against damaged and cyclic lists. Empty before the
/// linker has run. Error kNotFound if the program can have no such list (static, no DT_DEBUG).
/// Source: <link.h> (struct r_debug, r_debug_extended, link_map).
Result<LinkMapList> read_link_maps(const MemoryReader& memory, std::span<const std::uint8_t> auxv,
                                   unsigned pointer_bytes);

}  // namespace backtrail::tracee
