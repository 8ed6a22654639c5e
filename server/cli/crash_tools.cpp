#include "server/cli/crash_tools.hpp"

#include <cstdio>
#include <optional>
#include <utility>
#include <vector>

#include <sys/stat.h>

#include <fmt/format.h>

#include "decoder/corefile/core_file.hpp"
#include "decoder/report/clean_text.hpp"
#include "ptrace/core/core_memory.hpp"
#include "ptrace/core/mapped_file.hpp"
#include "server/crash/archive.hpp"
#include "server/crash/crash_info.hpp"
#include "server/crash/pack.hpp"

namespace backtrail::server {
namespace {

int fail_with(const std::string& text) {
  fmt::print(stderr, "backtrail: {}\n", decoder::printable(text));
  return 1;
}

}  // namespace

int run_info(const InfoOptions& options) {
  std::optional<UnpackedCrash> unpacked;
  std::string path = options.file;
  std::vector<std::string> roots;
  if (looks_like_archive(options.file)) {
    auto opened = UnpackedCrash::open(options.file);
    if (!opened) return fail_with(opened.error());
    unpacked.emplace(std::move(*opened));
    path = unpacked->core_file();
    roots = {unpacked->files()};
  }
  const auto file = tracee::MappedFile::open(path);
  if (!file) return fail_with(options.file + ": " + file.error().message());
  const auto core = decoder::CoreFile::parse(file->bytes());
  if (!core) return fail_with(options.file + ": " + core.error().message());
  tracee::CoreMemory memory{*core, roots};
  struct stat status {};
  constexpr std::uint64_t kBlock = 512;
  const std::uint64_t disk_bytes = ::stat(path.c_str(), &status) == 0
                                       ? static_cast<std::uint64_t>(status.st_blocks) * kBlock
                                       : 0;
  const std::string text = crash_info(options.file, disk_bytes, *core, memory);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return 0;
}

int run_pack(const PackOptions& options) {
  const std::string output = options.output.empty() ? options.file + ".tar.zst" : options.output;
  const auto packed = pack_crash(options.file, output);
  if (!packed) return fail_with(packed.error());
  std::fwrite(packed->data(), 1, packed->size(), stdout);
  return 0;
}

}  // namespace backtrail::server
