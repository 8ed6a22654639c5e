// SPDX-License-Identifier: Apache-2.0
// `backtrail record -o` where the file's folder is missing or cannot be written.
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "record_fixture.hpp"
#include "test/support/temporary_folder.hpp"

namespace backtrail::test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::StartsWith;

namespace fs = std::filesystem;

constexpr int kSegv = 1000 + SIGSEGV;

class RecordFolder : public ::testing::Test {
 protected:
  Ran record(const std::string& pattern, const Words& program, const Words& options = {}) {
    return finish(
        *start(with(with({BT_BACKTRAIL, "record", "-o", pattern}, options), with({"--"}, program)),
               folder.path()));
  }
  static Words crashes(const std::string& how) {
    return {std::string{BT_INFERIOR_DIR} + "/crashes", how};
  }
  /// Returns the paths of all files below the folder, sorted.
  [[nodiscard]] std::vector<std::string> files() const {
    std::vector<std::string> found;
    for (const auto& entry : fs::recursive_directory_iterator{folder.path()}) {
      if (!entry.is_directory())
        found.push_back(fs::relative(entry.path(), folder.path()).string());
    }
    std::sort(found.begin(), found.end());
    return found;
  }
  /// Checks that the program crashes without a file: a warning comes before its first output, and
  /// the reason again at the end.
  void expect_warned(const std::string& pattern, const std::string& warning,
                     const Words& options = {}) {
    const Ran ran = record(pattern, crashes("null"), options);
    EXPECT_EQ(ran.status, kSegv) << pattern;
    EXPECT_THAT(ran.output, AllOf(StartsWith("backtrail: warning: no crash file can be kept: "),
                                  HasSubstr(warning), HasSubstr("\nnull\n")))
        << pattern;
    const std::string after =
        ran.output.substr(std::min(ran.output.find("\nnull\n"), ran.output.size()));
    EXPECT_THAT(after, HasSubstr("backtrail: no crash file: cannot ")) << pattern;
    // A program that succeeds is warned about too, and still succeeds.
    const Ran passed = record(pattern, crashes("fine"), options);
    EXPECT_EQ(passed.status, 0) << pattern;
    EXPECT_THAT(passed.output, AllOf(HasSubstr(warning), HasSubstr("fine\n"))) << pattern;
  }

  TemporaryFolder folder;
};

TEST_F(RecordFolder, IsMadeBeforeTheRun) {
  const Ran passed = record("a/b/c/x.core", crashes("fine"));
  EXPECT_EQ(passed.output, "fine\n");
  EXPECT_TRUE(fs::is_directory(folder / "a/b/c"));
  EXPECT_EQ(record("a/b/d/x.core", crashes("null")).status, kSegv);
  EXPECT_THAT(files(), ElementsAre("a/b/d/x.core"));
}

TEST_F(RecordFolder, IsMadeForArchivesAndForEveryBranch) {
  EXPECT_EQ(record("packed/x.core", crashes("null"), {"--pack"}).status, kSegv);
  EXPECT_EQ(record("all/x.core", crashes("null"), {"--all"}).status, kSegv);
  EXPECT_EQ(record("100%%/%p/%e.core", crashes("null"), {"--all"}).status, kSegv);
  EXPECT_THAT(files(), ElementsAre(MatchesRegex("100%/[0-9]+/crashes.core"), "all/x.core",
                                   "packed/x.core.tar.zst"));
}

TEST_F(RecordFolder, OfAProcessIsMadeWhenItCrashes) {
  EXPECT_EQ(record("run/%p/x.core", crashes("fine")).output, "fine\n");
  EXPECT_TRUE(fs::is_empty(folder / "run"));
  EXPECT_EQ(record("run/%p/x.core", crashes("null")).status, kSegv);
  EXPECT_THAT(files(), ElementsAre(MatchesRegex("run/[0-9]+/x.core")));
}

TEST_F(RecordFolder, OfAChildThatWasExpectedToDieIsRemoved) {
  record("run/%e/%p/x.core", with(crashes("child"), {"0"}));
  EXPECT_TRUE(fs::is_empty(folder / "run"));
}

TEST_F(RecordFolder, StandsForFilesInIt) {
  EXPECT_EQ(record("made/", crashes("null")).status, kSegv);
  fs::create_directory(folder / "old");
  EXPECT_EQ(record("old", crashes("null")).status, kSegv);
  EXPECT_THAT(files(), ElementsAre(MatchesRegex("made/crashes.[0-9]+.core"),
                                   MatchesRegex("old/crashes.[0-9]+.core")));
}

TEST_F(RecordFolder, IsMadeAgainWhenTheProgramRemovesIt) {
  const Ran ran = record("out/x.core", shell("rm -r out; kill -SEGV $$"));
  EXPECT_EQ(ran.status, kSegv);
  EXPECT_THAT(files(), ElementsAre("out/x.core"));
}

TEST_F(RecordFolder, IsWhereTheRecorderStartedNotWhereTheProgramWent) {
  record("out/x.core", shell("mkdir other; cd other; kill -SEGV $$"));
  EXPECT_THAT(files(), ElementsAre("out/x.core"));
}

TEST_F(RecordFolder, ThatCannotBeMadeIsToldAtOnce) {
  std::ofstream{folder / "file"} << "x";
  fs::create_symlink("nowhere", folder / "link");
  expect_warned(
      "file/x.core",
      "cannot make the folder 'file': a file has that name; name another place after -o\n");
  expect_warned("file/sub/x.core", "cannot make the folder 'file': a file has that name");
  expect_warned("link/x.core", "cannot make the folder 'link': a dangling link has that name");
  expect_warned("/proc/backtrail/x.core", "cannot make the folder '/proc/backtrail': ");
  expect_warned("file/x.core", "cannot make the folder 'file': ", {"--all"});
  expect_warned("file/x.core", "cannot make the folder 'file': ", {"--pack"});
  expect_warned("file/%p/x.core", "cannot make the folder 'file': ");
  EXPECT_THAT(files(), ElementsAre("file", "link"));
}

TEST_F(RecordFolder, TakesNoNameThatIsTooLong) {
  expect_warned("out/" + std::string(300, 'x'), "File name too long; give -o a shorter name\n");
  expect_warned(std::string(300, 'x') + "/x", "File name too long");
  // The temporary name while the file is written is longer.
  expect_warned("out/" + std::string(254, 'x'), "File name too long");
  EXPECT_THAT(files(), IsEmpty());
}

TEST_F(RecordFolder, ThatIsReadOnlyOrFullIsToldAtOnce) {
  const std::string mount = "mkdir disk; mount -t tmpfs -o size=4k,nr_inodes=3 t disk || exit 77; ";
  const auto told = [&](const std::string& script, const std::string& pattern) {
    Words words{
        "unshare", "--map-root-user", "--mount", "sh", "-c",    mount + script + "exec \"$@\"",
        "sh",      BT_BACKTRAIL,      "record",  "-o", pattern, "--"};
    fs::remove_all(folder / "disk");
    return finish(*start(with(words, crashes("null")), folder.path()));
  };
  const Ran full = told("dd if=/dev/zero of=disk/fill bs=4k count=1 2>&-; ", "disk/x.core");
  if (full.status == 77 || full.status == 1) GTEST_SKIP() << "nothing can be mounted here";
  EXPECT_EQ(full.status, kSegv) << full.output;
  EXPECT_THAT(full.output,
              AllOf(StartsWith("backtrail: warning: no crash file can be kept: cannot write "
                               "'disk/x.core': No space left on device; free some space, or "),
                    HasSubstr("\nnull\n")));
  const Ran little = told("", "disk/x.core");
  EXPECT_THAT(little.output,
              StartsWith("backtrail: warning: no crash file can be kept: the disk of "
                         "'disk' has 4 kB left: free some space, or "));
  const Ran read_only = told("mount -o remount,ro disk; ", "disk/x.core");
  EXPECT_THAT(read_only.output,
              StartsWith("backtrail: warning: no crash file can be kept: cannot write "
                         "'disk/x.core': Read-only file system; name another place after -o\n"));
  EXPECT_THAT(told("mount -o remount,ro disk; ", "disk/new/x.core").output,
              HasSubstr("cannot make the folder 'disk/new': Read-only file system; "));
}

TEST_F(RecordFolder, NeedsAName) {
  const Ran ran = record("", crashes("null"));
  EXPECT_EQ(ran.status, 1);
  EXPECT_THAT(ran.output, AllOf(HasSubstr("-o needs the name of a file, or of a folder"),
                                Not(HasSubstr("null\n"))));
}

}  // namespace
}  // namespace backtrail::test
