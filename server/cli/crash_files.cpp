// SPDX-License-Identifier: Apache-2.0
#include "server/cli/crash_files.hpp"

#include <cstdio>
#include <utility>

#include <fmt/format.h>

#include "server/cli/cli_words.hpp"
#include "server/cli/serve.hpp"
#include "server/crash/crash_source.hpp"
#include "server/target/core_target.hpp"

namespace backtrail::server {
namespace {

constexpr const char* kHowToConnect =
    "In gdb:\n"
    "  target remote | backtrail replay - {0}\n"
    "or, while this runs, with the port below:\n"
    "  target remote :PORT\n"
    "then:\n"
    "  reverse-step                 (with values; record btrace adds gdb's own histories)\n";

constexpr const char* kWhatIsKnown =
    "backtrail: reverse-step goes back from here and shows the values that follow from the trace; "
    "after record btrace gdb shows control flow alone. Memory and registers cannot be changed\n";

/// gdb reads sources itself. It looks for them again after this command.
constexpr const char* kWhereSourcesLie =
    "backtrail: to find the archive's sources, type in gdb, before or after it connects:\n"
    "  set substitute-path / {0}/\n";

/// A gdb that connects later can read debug files here; otherwise it reads them over the
/// connection.
constexpr const char* kWhereDebugFilesLie =
    "backtrail: to find its debug files, type in gdb before it connects:\n"
    "  set debug-file-directory {0}/usr/lib/debug\n";

}  // namespace

int run_replay(const ReplayOptions& options) {
  auto source = CrashSource::open(options.file, options.roots, options.unpack);
  if (!source) return fail_with(source.error());
  if (const UnpackedCrash* unpacked = source->unpacked(); unpacked != nullptr) {
    fmt::print(stderr, kWhereSourcesLie, unpacked->files());
    if (options.comm.kind != CommKind::kStdio) {
      fmt::print(stderr, kWhereDebugFilesLie, unpacked->files());
    }
  }
  const auto target = make_core_target(std::move(*source).take_core(), source->roots());
  if (options.says_how) fmt::print(stderr, kHowToConnect, options.file);
  fmt::print(stderr, kWhatIsKnown);
  ServeOptions serve;
  serve.comm = options.comm;
  serve.launch.stdio_is_protocol = options.comm.kind == CommKind::kStdio;
  return run_serve(serve, *target);
}

}  // namespace backtrail::server
