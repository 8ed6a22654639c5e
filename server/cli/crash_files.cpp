#include "server/cli/crash_files.hpp"

#include <cstdio>
#include <optional>

#include <fmt/format.h>

#include "server/cli/serve.hpp"
#include "server/crash/archive.hpp"
#include "server/crash/pack.hpp"
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
    "backtrail: of the past, control flow is known and values of variables are not\n";

/// gdb reads these itself.
constexpr const char* kWhereItLies =
    "backtrail: for debug files and sources, in gdb, before the connection:\n"
    "  set debug-file-directory {0}/usr/lib/debug\n"
    "  set substitute-path / {0}/\n";

}  // namespace

int run_replay(const ReplayOptions& options) {
  std::optional<UnpackedCrash> unpacked;
  std::string file = options.file;
  std::vector<std::string> roots = options.roots;
  if (looks_like_archive(options.file)) {
    auto opened = UnpackedCrash::open(options.file);
    if (!opened) {
      fmt::print(stderr, "backtrail: {}\n", opened.error());
      return 1;
    }
    unpacked.emplace(std::move(*opened));
    file = unpacked->core_file();
    roots.insert(roots.begin(), unpacked->files());
    fmt::print(stderr, kWhereItLies, unpacked->files());
  }
  const auto target = make_core_target(file, roots);
  if (!target) {
    fmt::print(stderr, "backtrail: {}: {}\n", options.file, target.error().message());
    return 1;
  }
  if (options.says_how) fmt::print(stderr, kHowToConnect, options.file);
  fmt::print(stderr, kWhatIsKnown);
  ServeOptions serve;
  serve.comm = options.comm;
  serve.launch.stdio_is_protocol = options.comm.kind == CommKind::kStdio;
  return run_serve(serve, **target);
}

}  // namespace backtrail::server
