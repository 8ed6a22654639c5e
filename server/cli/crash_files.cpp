#include "server/cli/crash_files.hpp"

#include <cstdio>
#include <utility>

#include <fmt/format.h>

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
    "  record btrace\n"
    "  reverse-step\n";

constexpr const char* kWhatIsKnown =
    "backtrail: of the past, control flow is known and values of variables are not; memory and "
    "registers are those of the end and cannot be changed\n";

/// gdb reads these itself.
constexpr const char* kWhereItLies =
    "backtrail: for debug files and sources, in gdb, before the connection:\n"
    "  set debug-file-directory {0}/usr/lib/debug\n"
    "  set substitute-path / {0}/\n";

}  // namespace

int run_replay(const ReplayOptions& options) {
  auto source = CrashSource::open(options.file, options.roots);
  if (!source) {
    fmt::print(stderr, "backtrail: {}\n", source.error());
    return 1;
  }
  if (source->unpacked() != nullptr) fmt::print(stderr, kWhereItLies, source->unpacked()->files());
  const auto target = make_core_target(std::move(*source).take_core(), source->roots());
  if (options.says_how) fmt::print(stderr, kHowToConnect, options.file);
  fmt::print(stderr, kWhatIsKnown);
  ServeOptions serve;
  serve.comm = options.comm;
  serve.launch.stdio_is_protocol = options.comm.kind == CommKind::kStdio;
  return run_serve(serve, *target);
}

}  // namespace backtrail::server
