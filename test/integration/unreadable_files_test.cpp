// SPDX-License-Identifier: Apache-2.0
// Every command's error for a file that it cannot read or write.
#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include "report_fixture.hpp"

namespace backtrail::tracee {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Words = std::vector<std::string>;

class UnreadableFile : public test::ReportFixture {
 protected:
  void make(const std::string& name, const std::string& content) {
    std::ofstream{folder / name, std::ios::binary} << content;
  }
  /// Runs the command with the words of `prefix` before it, and checks its error.
  void expect_problem(const Words& prefix, const Words& command, const std::string& text) {
    Words words = prefix;
    words.emplace_back(BT_SERVER);
    words.insert(words.end(), command.begin(), command.end());
    EXPECT_EQ(run(words, 1), "backtrail: " + text + "\n");
  }
  /// Checks the error of every command that reads a file.
  void expect_unreadable(const std::string& file, const std::string& why,
                         const Words& prefix = {}) {
    for (const Words& command : std::vector<Words>{{"decode"},
                                                   {"decode", "--ds-format", "core2"},
                                                   {"info"},
                                                   {"report"},
                                                   {"report", "--html"},
                                                   {"replay"},
                                                   {"replay", "-"},
                                                   {"pack"}}) {
      SCOPED_TRACE(::testing::PrintToString(command));
      Words words = command;
      words.push_back(file);
      expect_problem(prefix, words, fmt::format("cannot read '{}': {}", file, why));
    }
  }
};

TEST_F(UnreadableFile, MayBeMissing) {
  expect_unreadable("missing", "No such file or directory");
  make("file", "x");
  expect_unreadable("file/below", "Not a directory");
}

TEST_F(UnreadableFile, MayBeAFolder) {
  expect_unreadable(folder.path(), "Is a directory");
}

TEST_F(UnreadableFile, MayBeEmpty) {
  make("empty", "");
  expect_unreadable("empty", "the file is empty");
}

TEST_F(UnreadableFile, MayBeAPipe) {
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  for (const std::string command : {"info", "report", "replay", "pack"}) {
    expect_problem({}, {command, "pipe"}, "cannot read 'pipe': it is not a plain file");
  }
}

TEST_F(UnreadableFile, MayBeSomebodyElses) {
  make("locked", "x");
  ASSERT_EQ(::chmod((folder / "locked").c_str(), 0), 0);
  Words as_nobody;
  if (::geteuid() == 0) {
    // Root reads every file.
    as_nobody = {"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"};
    if (!has("setpriv")) GTEST_SKIP() << "root, and no setpriv";
    ASSERT_EQ(::chmod(folder.path().c_str(), 0755), 0);
    Words words = as_nobody;
    words.insert(words.end(), {BT_SERVER, "--version"});
    run(words, -1);
    if (status != 0) GTEST_SKIP() << "root, and nobody else can run " << BT_SERVER;
  }
  expect_unreadable("locked", "Permission denied", as_nobody);
}

TEST_F(UnreadableFile, IsNamedSafely) {
  expect_problem({}, {"decode", "\x1b[31mred"},
                 "cannot read '\\x1b[31mred': No such file or directory");
}

TEST_F(UnreadableFile, MayBeADamagedArchive) {
  make("x.tar.zst", "\x28\xb5\x2f\xfd what is this");
  for (const std::string command : {"info", "report", "replay"}) {
    EXPECT_THAT(run({BT_SERVER, command, "x.tar.zst"}, 1),
                HasSubstr("backtrail: cannot read 'x.tar.zst': "));
  }
}

TEST_F(UnreadableFile, MayBeAFolderOfFiles) {
  record("crashes", {"null"});
  make("file", "x");
  for (const std::string command : {"report", "replay"}) {
    const auto expect_refused = [&](const std::string& root, const std::string& why) {
      expect_problem({}, {command, "--files", root, "x.core"},
                     fmt::format("cannot read '{}': {}", root, why));
    };
    expect_refused("missing", "No such file or directory");
    expect_refused("file", "Not a directory");
  }
}

TEST_F(UnreadableFile, MayBeAnOutput) {
  record("crashes", {"null"});
  make("file", "x");
  const std::string missing = "cannot write 'no/x': No such file or directory";
  expect_problem({}, {"report", "-o", "no/x", "x.core"}, missing);
  expect_problem({}, {"pack", "-o", "no/x", "x.core"}, missing);
  expect_problem({}, {"report", "-o", folder.path(), "x.core"},
                 "cannot write '" + folder.path() + "': Is a directory");
  // The program still runs.
  const std::string why = "cannot make the folder 'file': a file has that name";
  const std::string warning = "backtrail: warning: no crash file can be kept: " + why;
  EXPECT_THAT(run({BT_SERVER, "record", "--on", "always", "-o", "file/x", "--", "/bin/true"}),
              AllOf(HasSubstr(warning), HasSubstr("backtrail: no crash file: " + why)));
  EXPECT_THAT(run({BT_SERVER, "record", "--all", "-o", "file/x", "--", "/bin/true"}),
              HasSubstr(warning));
}

}  // namespace
}  // namespace backtrail::tracee
