// SPDX-License-Identifier: Apache-2.0
// Command line of `backtrail replay`, `why`, `info` and `pack`.

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "server/cli/cli_words.hpp"
#include "server/cli/command_line.hpp"

namespace backtrail::server {
namespace {

/// CLI11 cannot say that COMM comes first.
class ReplayFormatter final : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App* /*app*/, std::string /*name*/) const override {
    return "Usage: backtrail replay [OPTIONS] [COMM] FILE\n";
  }
};

}  // namespace

Command parse_replay_arguments(std::span<const std::string> words) {
  ReplayOptions options;
  std::vector<std::string> places;
  CLI::App app{"Serve a crash file to gdb", "backtrail replay"};
  app.formatter(std::make_shared<ReplayFormatter>());
  app.add_option("FILE", places,
                 "The crash file or an archive made by pack; COMM before it says where to listen, "
                 "as for serve")
      ->type_name("[COMM] FILE")
      ->required()
      ->expected(1, 2);
  add_roots_option(app, options.roots);
  app.add_option("--unpack", options.unpack,
                 "Unpack an archive into this folder, which stays: gdb can then find its sources "
                 "before it connects (default: a temporary folder)")
      ->type_name("FOLDER");
  if (auto exit = parse_words(app, words)) return *exit;
  options.says_how = places.size() == 1;
  options.file = places.back();
  auto comm = parse_comm(options.says_how ? ":0" : places.front());
  if (!comm) return wrong_words("replay", comm.error());
  options.comm = std::move(*comm);
  return options;
}

Command parse_why_arguments(std::span<const std::string> words) {
  WhyOptions options;
  CLI::App app{"Tell where a value was last written before the crash, and from what",
               "backtrail why"};
  app.footer(
      "EXPR is a variable of a function on the stack, or a global one of its source file; a\n"
      "register ($rax); or an address with a number of bytes, 8 if none (0x7ffe1000:4).");
  app.add_option("FILE", options.file, "The crash file, or an archive made by pack")->required();
  app.add_option("EXPR", options.expression, "The variable, register or memory")->required();
  add_roots_option(app, options.roots);
  if (auto exit = parse_words(app, words)) return *exit;
  return options;
}

Command parse_info_arguments(std::span<const std::string> words) {
  InfoOptions options;
  CLI::App app{"List the contents of a crash file", "backtrail info"};
  app.add_option("FILE", options.file, "The crash file, any core, or an archive made by pack")
      ->required();
  if (auto exit = parse_words(app, words)) return *exit;
  return options;
}

Command parse_pack_arguments(std::span<const std::string> words) {
  PackOptions options;
  CLI::App app{"Pack a crash file, its programs and their sources into one archive",
               "backtrail pack"};
  app.footer(
      "Run it on the machine where the program ran. replay, report and info read the archive\n"
      "like a crash file.");
  app.add_option("FILE", options.file, "The crash file")->required();
  app.add_option("-o,--output", options.output, "The archive (default: FILE.tar.zst)")
      ->type_name("ARCHIVE");
  if (auto exit = parse_words(app, words)) return *exit;
  return options;
}

}  // namespace backtrail::server
