// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Seeds: translations for a program that has none of its own yet, taken from another program that
/// loads the same libraries. Each test of a project is such a program once.

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace backtrail::tracee::cache {

struct Seed {
  std::string key;           ///< Key of the translations in the PersistentStore.
  std::uint64_t shared = 0;  ///< Number of superblocks that are not of that program's own code.
};

/// Seeds by kind of program, in files beside the translations or in memory.
class Seeds {
 public:
  explicit Seeds(std::filesystem::path folder) : folder_{std::move(folder)} {}

  /// `in_folder`: the folder can be trusted.
  [[nodiscard]] std::optional<Seed> find(const std::string& kind, bool in_folder);
  void set(const std::string& kind, const Seed& who, bool in_folder);

 private:
  [[nodiscard]] std::filesystem::path file_of(const std::string& kind) const;

  std::filesystem::path folder_;
  std::map<std::string, Seed> known_;
};

}  // namespace backtrail::tracee::cache
