#pragma once
/// @file
/// A crash file with all that it takes to look at it on another machine, in one archive:
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
/// @return What is in it and what is missing, lines for people.
[[nodiscard]] Explained<std::string> pack_crash(const std::string& core_file,
                                                const std::string& archive);

/// An archive, unpacked into a folder of its own for as long as this lives.
class UnpackedCrash {
 public:
  static Explained<UnpackedCrash> open(const std::string& archive);
  ~UnpackedCrash();
  UnpackedCrash(UnpackedCrash&& other) noexcept;
  UnpackedCrash& operator=(UnpackedCrash&& other) = delete;

  [[nodiscard]] std::string core_file() const { return folder_ + "/" + kPackedCore; }
  [[nodiscard]] std::string files() const { return folder_ + "/" + kPackedFiles; }

 private:
  explicit UnpackedCrash(std::string folder) : folder_{std::move(folder)} {}

  std::string folder_;
};

}  // namespace backtrail::server
