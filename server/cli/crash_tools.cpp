// SPDX-License-Identifier: Apache-2.0
#include "server/cli/crash_tools.hpp"

#include <cstdio>
#include <string>

#include <sys/stat.h>

#include <fmt/format.h>

#include "ptrace/core/program_memory.hpp"
#include "server/cli/cli_words.hpp"
#include "server/crash/crash_info.hpp"
#include "server/crash/crash_source.hpp"
#include "server/crash/pack.hpp"

namespace backtrail::server {

int run_info(const InfoOptions& options) {
  const auto source = CrashSource::open(options.file, {});
  if (!source) return fail_with(source.error());
  tracee::ProgramMemory memory{source->core(), source->roots()};
  struct stat status {};
  constexpr std::uint64_t kBlock = 512;
  const std::uint64_t disk_bytes = ::stat(source->path().c_str(), &status) == 0
                                       ? static_cast<std::uint64_t>(status.st_blocks) * kBlock
                                       : 0;
  const std::string text = crash_info(options.file, disk_bytes, source->core(), memory);
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
