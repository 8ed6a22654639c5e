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

/// An archive, unpacked.
class UnpackedCrash {
 public:
  /// @param folder  Where to, a folder that is made or empty, or holds what was unpacked before; it
  ///                stays. Empty: a folder of its own, which is gone when this is.
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
