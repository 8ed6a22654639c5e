// SPDX-License-Identifier: Apache-2.0
// Unpacks untrusted archives as `replay` and `report` do. Every file must be created inside the
// target folder, or not at all.
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "decoder/corefile/core_file.hpp"
#include "ptrace/core/mapped_file.hpp"
#include "server/crash/archive.hpp"
#include "server/crash/pack.hpp"

namespace {

namespace fs = std::filesystem;
using namespace backtrail;

/// Returns the folder that contains "archive" and the folder "inside/" that it is unpacked into.
const std::string& outside() {
  static const std::string folder = [] {
    std::string name = (fs::temp_directory_path() / "archive_fuzz-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    return name;
  }();
  return folder;
}

bool only_ours_outside() {
  for (const auto& entry : fs::directory_iterator{outside()}) {
    const std::string name = entry.path().filename();
    if (name != "archive" && name != "inside") return false;
  }
  return true;
}

/// Returns true if there are only plain files and folders: a link could lead outside later.
bool only_plain_inside(const std::string& inside) {
  for (const auto& entry : fs::recursive_directory_iterator{inside}) {
    const auto status = entry.symlink_status();
    if (!fs::is_regular_file(status) && !fs::is_directory(status)) return false;
  }
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string file = outside() + "/archive";
  const std::string inside = outside() + "/inside";
  std::ofstream{file, std::ios::binary}.write(reinterpret_cast<const char*>(data),
                                              static_cast<std::streamsize>(size));
  fs::create_directory(inside);
  (void)server::looks_like_archive(file);
  (void)server::unpack_archive(file, inside);
  if (!only_ours_outside() || !only_plain_inside(inside)) std::abort();
  if (const auto core = tracee::MappedFile::open(inside + "/" + server::kPackedCore)) {
    (void)decoder::CoreFile::parse(core->bytes());
  }
  std::error_code ignored;
  fs::remove_all(inside, ignored);
  return 0;
}
