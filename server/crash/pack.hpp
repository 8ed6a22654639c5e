// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Packs a crash file and every file needed to read it on another machine into one archive:
///
///     crash.core    the file
///     files/...     program, libraries, debug files and sources, each at its own path below

#include <memory>
#include <string>
#include <utility>

#include "server/transport/explained.hpp"

namespace backtrail::server {

inline constexpr const char* kPackedCore = "crash.core";
inline constexpr const char* kPackedFiles = "files";

/// Writes the archive.
/// @return The packed and the missing files, lines for people.
[[nodiscard]] Explained<std::string> pack_crash(const std::string& core_file,
                                                const std::string& archive);

/// An unpacked archive.
class UnpackedCrash {
 public:
  /// @param folder  Folder to unpack into; it stays. It is created, or must be empty or hold an
  /// archive unpacked before. Empty: a temporary folder, removed by the destructor.
  static Explained<UnpackedCrash> open(const std::string& archive, const std::string& folder = {});
  ~UnpackedCrash();
  UnpackedCrash(UnpackedCrash&& other) noexcept;
  UnpackedCrash& operator=(UnpackedCrash&& other) = delete;

  [[nodiscard]] std::string core_file() const { return folder_ + "/" + kPackedCore; }
  [[nodiscard]] std::string files() const { return folder_ + "/" + kPackedFiles; }

 private:
  UnpackedCrash(std::string folder, bool stays) : folder_{std::move(folder)}, stays_{stays} {}

  std::string folder_;
  bool stays_;
};

}  // namespace backtrail::server
