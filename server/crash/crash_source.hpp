// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Opens crash files and explains failures.

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "arch/base/error.hpp"
#include "server/crash/pack.hpp"
#include "server/target/open_core.hpp"
#include "server/transport/explained.hpp"

namespace backtrail::server {

/// Returns "cannot read 'FILE': why", the form of all commands.
[[nodiscard]] std::string cannot_read(std::string_view file, std::string_view why);
[[nodiscard]] std::string cannot_read(std::string_view file, const Error& why);
/// Returns the text for a file that cannot be written.
[[nodiscard]] std::string cannot_write(std::string_view file, std::string_view why);
[[nodiscard]] std::string cannot_write(std::string_view file, const Error& why);

/// Opens a core file. Errors name `file`, wherever `path` lies.
[[nodiscard]] Explained<OpenCore> open_core(const std::string& path, const std::string& file);

/// A crash file, or an archive of `pack` unpacked for the lifetime of this object.
class CrashSource {
 public:
  /// @param roots  Folders to search for the program's files; the user named them.
  /// @param folder  Where to unpack an archive; see UnpackedCrash::open().
  static Explained<CrashSource> open(const std::string& file, std::vector<std::string> roots,
                                     const std::string& folder = {});

  [[nodiscard]] const decoder::CoreFile& core() const { return core_.core; }
  [[nodiscard]] OpenCore take_core() && { return std::move(core_); }
  /// Returns the path of the core file itself.
  [[nodiscard]] const std::string& path() const { return path_; }
  /// Returns the folders to search for the program's files, the archive's own first.
  [[nodiscard]] const std::vector<std::string>& roots() const { return roots_; }
  [[nodiscard]] const UnpackedCrash* unpacked() const { return unpacked_ ? &*unpacked_ : nullptr; }

 private:
  CrashSource(OpenCore core, std::optional<UnpackedCrash> unpacked, std::string path,
              std::vector<std::string> roots)
      : core_{std::move(core)},
        unpacked_{std::move(unpacked)},
        path_{std::move(path)},
        roots_{std::move(roots)} {}

  OpenCore core_;
  std::optional<UnpackedCrash> unpacked_;
  std::string path_;
  std::vector<std::string> roots_;
};

}  // namespace backtrail::server
