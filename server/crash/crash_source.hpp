#pragma once
/// @file
/// Files that somebody named: a crash file opened, and why one cannot be.

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

/// "cannot read 'FILE': why", fit to be printed, in all commands.
[[nodiscard]] std::string cannot_read(std::string_view file, std::string_view why);
[[nodiscard]] std::string cannot_read(std::string_view file, const Error& why);
/// Likewise of what should be written.
[[nodiscard]] std::string cannot_write(std::string_view file, std::string_view why);
[[nodiscard]] std::string cannot_write(std::string_view file, const Error& why);

/// A core file. The text says `file`, wherever the bytes lie.
[[nodiscard]] Explained<OpenCore> open_core(const std::string& path, const std::string& file);

/// A crash file or an archive of `pack`, unpacked for as long as this lives.
class CrashSource {
 public:
  /// @param roots  Folders in which the program's files are looked for, named by somebody too.
  /// @param folder  Where an archive is unpacked to and stays, see UnpackedCrash::open().
  static Explained<CrashSource> open(const std::string& file, std::vector<std::string> roots,
                                     const std::string& folder = {});

  [[nodiscard]] const decoder::CoreFile& core() const { return core_.core; }
  [[nodiscard]] OpenCore take_core() && { return std::move(core_); }
  /// Where the core file itself lies.
  [[nodiscard]] const std::string& path() const { return path_; }
  /// The archive's own first.
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
