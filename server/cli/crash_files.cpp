#include "server/cli/crash_files.hpp"

#include <cstdio>

#include <fmt/format.h>

#include "server/cli/serve.hpp"
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

}  // namespace

int run_replay(const ReplayOptions& options) {
  const auto target = make_core_target(options.file, options.roots);
  if (!target) {
    fmt::print(stderr, "backtrail: {}: {}\n", options.file, target.error().message());
    return 1;
  }
  if (options.says_how) fmt::print(stderr, kHowToConnect, options.file);
  ServeOptions serve;
  serve.comm = options.comm;
  serve.launch.stdio_is_protocol = options.comm.kind == CommKind::kStdio;
  return run_serve(serve, **target);
}

}  // namespace backtrail::server
