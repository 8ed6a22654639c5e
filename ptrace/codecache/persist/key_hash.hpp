#pragma once
/// @file
/// Names of files for keys.

#include <cstdint>
#include <string_view>

namespace backtrail::tracee::cache {

/// FNV-1a. The file says what it is for, so two keys with one hash displace each other at worst.
[[nodiscard]] constexpr std::uint64_t key_hash(std::string_view key) {
  std::uint64_t value = 0xcbf2'9ce4'8422'2325ULL;
  for (const char c : key) value = (value ^ static_cast<unsigned char>(c)) * 0x100'0000'01b3ULL;
  return value;
}

}  // namespace backtrail::tracee::cache
