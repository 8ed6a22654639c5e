// SPDX-License-Identifier: Apache-2.0
#include "server/crash/crash_source.hpp"

#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include <sys/stat.h>

#include <fmt/format.h>

#include "decoder/report/clean_text.hpp"
#include "server/crash/archive.hpp"

namespace backtrail::server {
namespace {

std::string sentence(std::string_view what, std::string_view file, std::string_view why) {
  return fmt::format("cannot {} '{}': {}", what, decoder::printable(file), decoder::printable(why));
}

}  // namespace

std::string cannot_read(std::string_view file, std::string_view why) {
  return sentence("read", file, why);
}
std::string cannot_read(std::string_view file, const Error& why) {
  return cannot_read(file, why.reason());
}
std::string cannot_write(std::string_view file, std::string_view why) {
  return sentence("write", file, why);
}
std::string cannot_write(std::string_view file, const Error& why) {
  return cannot_write(file, why.reason());
}

Explained<OpenCore> open_core(const std::string& path, const std::string& file) {
  auto mapped = tracee::MappedFile::open(path);
  if (!mapped && mapped.error().is(TraceErrc::kUnsupported)) {
    return explain(cannot_read(file, "it is not a plain file"));
  }
  if (!mapped) return explain(cannot_read(file, mapped.error()));
  if (mapped->bytes().empty()) return explain(cannot_read(file, "the file is empty"));
  auto core = decoder::CoreFile::parse(mapped->bytes());
  if (!core) return explain(cannot_read(file, core.error()));
  return OpenCore{std::move(*mapped), std::move(*core)};
}

Explained<CrashSource> CrashSource::open(const std::string& file, std::vector<std::string> roots,
                                         const std::string& folder) {
  for (const std::string& root : roots) {
    struct stat status {};
    if (::stat(root.c_str(), &status) != 0) {
      return explain(cannot_read(root, errno_error("look at a folder")));
    }
    if (!S_ISDIR(status.st_mode)) return explain(cannot_read(root, std::strerror(ENOTDIR)));
  }
  std::optional<UnpackedCrash> unpacked;
  std::string path = file;
  if (looks_like_archive(file)) {
    auto opened = UnpackedCrash::open(file, folder);
    if (!opened) return explain(opened.error());
    unpacked.emplace(std::move(*opened));
    path = unpacked->core_file();
    roots.insert(roots.begin(), unpacked->files());
  }
  auto core = open_core(path, file);
  if (!core) return explain(core.error());
  return CrashSource{std::move(*core), std::move(unpacked), std::move(path), std::move(roots)};
}

}  // namespace backtrail::server
