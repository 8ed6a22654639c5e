// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Records crash files in a temporary folder and runs reports on them.

#include <chrono>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "test/support/effort.hpp"
#include "test/support/subprocess.hpp"
#include "test/support/temporary_folder.hpp"

namespace backtrail::test {

class ReportFixture : public ::testing::Test {
 protected:
  /// Runs a command and returns its output.
  /// @param input   Standard input.
  /// @param wanted  Expected exit status; -1 = any.
  std::string run(const std::vector<std::string>& words, int wanted = 0,
                  const std::string& input = {}) {
    SpawnOptions options;
    options.arguments = words;
    options.environment = test_environment();
    if (words.front() == "chromium") options.environment.push_back("HOME=" + folder.path());
    options.working_directory = folder.path();
    Subprocess program{options};
    program.write(input);
    program.close_input();
    status = program.wait(deadline_in(std::chrono::seconds{240})).value_or(-1);
    if (wanted >= 0) {
      EXPECT_EQ(status, wanted << 8) << program.output().text();
    }
    return program.output().text();
  }
  /// Records an inferior and leaves x.core.
  void record(const std::string& name, const std::vector<std::string>& arguments = {},
              const std::string& source = "cache") {
    std::vector<std::string> words{BT_SERVER, "record", "--source", source, "-o", "x.core", "--"};
    words.push_back(std::string{BT_INFERIOR_DIR} + "/" + name);
    words.insert(words.end(), arguments.begin(), arguments.end());
    run(words, -1);
  }
  std::string report(std::vector<std::string> options = {}) {
    options.insert(options.begin(), {BT_SERVER, "report", "x.core"});
    return run(options);
  }
  bool has(const std::string& program) {
    return !run({"sh", "-c", "command -v " + program}, -1).empty();
  }

  /// Returns why no browser can be run; empty if one can.
  std::string why_no_browser() {
    if (kSanitized) return "the page's script runs where nothing is sanitized";
    return has("chromium") ? "" : "no chromium";
  }
  /// Returns the DOM of a page in a browser after its scripts have run.
  std::string dom_of(const std::string& name) {
    // Time is virtual: it passes as fast as timers are asked for.
    return run({"chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
                "--user-data-dir=" + folder.path() + "/profile", "--window-size=1400,1000",
                "--virtual-time-budget=120000", "--dump-dom", "file://" + (folder / name)});
  }

  TemporaryFolder folder;
  int status = 0;
};

}  // namespace backtrail::test
