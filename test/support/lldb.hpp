// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Finds Debian's lldb of a version, with what it needs to run.

#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

namespace backtrail::test {

/// The versions of lldb that tests run: those of Debian 12, 13 and forky.
inline constexpr const char* kLldbVersions[] = {"14", "19", "21"};

/// An installed lldb.
struct InstalledLldb {
  std::string command;
  /// The folder of its Python modules. Debian 12's does not find it by itself.
  std::string python_path;
};

/// Returns lldb of the version, or nullopt if it is not installed.
inline std::optional<InstalledLldb> find_lldb(const std::string& version) {
  namespace fs = std::filesystem;
  const fs::path root = "/usr/lib/llvm-" + version;
  std::error_code error;
  if (!fs::exists(root / "bin/lldb", error)) return std::nullopt;
  InstalledLldb out{.command = root / "bin/lldb", .python_path = {}};
  for (const fs::directory_entry& python : fs::directory_iterator{root / "lib", error}) {
    if (python.path().filename().string().rfind("python3", 0) != 0) continue;
    for (const char* packages : {"dist-packages", "site-packages"}) {
      const fs::path folder = python.path() / packages;
      if (fs::exists(folder / "lldb", error)) out.python_path = folder;
    }
  }
  return out;
}

/// Returns the newest lldb that is installed, or nullopt.
inline std::optional<InstalledLldb> newest_lldb() {
  std::optional<InstalledLldb> out;
  for (const char* version : kLldbVersions) {
    if (auto found = find_lldb(version)) out = std::move(found);
  }
  return out;
}

}  // namespace backtrail::test
