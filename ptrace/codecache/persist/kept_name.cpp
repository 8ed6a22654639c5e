// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/persist/kept_name.hpp"

#include <cstdint>

#include <fmt/format.h>

namespace backtrail::tracee::cache {
namespace {

/// FNV-1a.
void add(std::string_view text, std::uint64_t& hash) {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100'0000'01b3ULL;
}

}  // namespace

std::string kept_name(std::string_view key, std::string_view kind, std::string_view build) {
  std::uint64_t hash = 0xcbf2'9ce4'8422'2325ULL;
  add(build, hash);
  add("\n", hash);
  add(key, hash);
  return fmt::format("{:016x}.{}", hash, kind);
}

}  // namespace backtrail::tracee::cache
