// SPDX-License-Identifier: Apache-2.0
// Main program of backtrail and backtrail-gdbserver: one program, two command lines.

#include <csignal>
#include <cstdio>
#include <exception>
#include <string>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "server/cli/command_line.hpp"
#include "server/cli/crash_tools.hpp"
#include "server/cli/decode.hpp"
#include "server/cli/record.hpp"
#include "server/cli/report.hpp"
#include "server/cli/serve.hpp"
#include "server/cli/tail.hpp"
#include "server/cli/why.hpp"
#include "server/doctor/doctor.hpp"
#include "server/doctor/known_program.hpp"
#include "server/portable/loader_environment.hpp"

namespace {

using namespace backtrail::server;  // NOLINT(google-build-using-namespace): the program's own file.

struct Runner {
  int operator()(const ServeOptions& options) const { return run_serve(options); }
  int operator()(const RecordOptions& options) const { return run_record(options); }
  int operator()(const ReplayOptions& options) const { return run_replay(options); }
  int operator()(const ReportCommand& options) const { return run_report(options); }
  int operator()(const WhyOptions& options) const { return run_why(options); }
  int operator()(const InfoOptions& options) const { return run_info(options); }
  int operator()(const PackOptions& options) const { return run_pack(options); }
  int operator()(const DoctorOptions& options) const {
    return options.known_program ? run_known_program() : run_doctor();
  }
  int operator()(const DecodeOptions& options) const { return run_decode(options); }
  int operator()(const TailOptions& options) const { return run_tail(options); }
  int operator()(const WarmOptions& options) const { return run_warm(options); }
  int operator()(const PrintAndExit& exit) const {
    std::FILE* stream = exit.status == 0 ? stdout : stderr;
    std::fwrite(exit.text.data(), 1, exit.text.size(), stream);
    return exit.status;
  }
};

}  // namespace

int main(int argc, char** argv) {
  restore_loader_environment(environ);
  if (argc > 0) restore_process_name(argv[0]);
  std::signal(SIGXFSZ, SIG_IGN);  // writing beyond the file size limit becomes an error (EFBIG)
  try {
    const std::vector<std::string> arguments(argv, argv + argc);
    return std::visit(Runner{}, parse_command_line(arguments));
  } catch (const std::exception& error) {
    // Only failures of start-up and a lack of memory or descriptors throw.
    fmt::print(stderr, "backtrail: {}\nExiting\n", error.what());
    return 1;
  }
}
