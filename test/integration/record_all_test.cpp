// SPDX-License-Identifier: Apache-2.0
// `record --all`: the file holds or reports as missing every branch.
#include <csignal>
#include <fstream>
#include <memory>
#include <regex>
#include <string>

#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "record_fixture.hpp"
#include "test/support/effort.hpp"
#include "test/support/temporary_folder.hpp"

namespace backtrail::test {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kProgram = BT_INFERIOR_DIR "/all_of_it";
const std::string many_rounds = kSanitized ? "20000" : "2000000";

std::uint64_t sum_of(const std::string& text, const std::string& pattern) {
  std::uint64_t sum = 0;
  const std::regex wanted{pattern};
  for (std::sregex_iterator at{text.begin(), text.end(), wanted}, end; at != end; ++at) {
    sum += std::stoull((*at)[1]);
  }
  return sum;
}

/// Counts of one run, from `--stats` and `info`.
struct Counted {
  std::uint64_t taken = 0;
  std::uint64_t kept = 0;
  std::uint64_t older = 0;
  std::uint64_t elsewhere = 0;  ///< Lost in gaps, damaged or missing.
  std::string said;
  std::string info;
};

Counted record_and_count(const std::string& file, const Words& options, const Words& program) {
  Words words{"--stats", "-o", file};
  words.insert(words.end(), options.begin(), options.end());
  words.emplace_back("--");
  words.insert(words.end(), program.begin(), program.end());
  Counted out;
  out.said = record(words).output;
  out.info = run({BT_BACKTRAIL, "info", file}).output;
  out.taken = sum_of(out.said, "branches taken +([0-9]+)");
  out.kept = sum_of(out.info, "([0-9]+) branches in");
  out.older = sum_of(out.info, "([0-9]+) older ones");
  out.elsewhere =
      sum_of(out.info, "([0-9]+) lost in gaps") + sum_of(out.info, "([0-9]+) damaged or");
  return out;
}

Counted record_all(const std::string& file, const Words& options, const Words& program) {
  Words words{"--all"};
  words.insert(words.end(), options.begin(), options.end());
  return record_and_count(file, words, program);
}

void expect_all(const Counted& counted) {
  EXPECT_GT(counted.kept, 1000U) << counted.said;
  EXPECT_EQ(counted.taken, counted.kept) << counted.said << counted.info;
  EXPECT_EQ(counted.older + counted.elsewhere, 0U) << counted.info;
  EXPECT_THAT(counted.info, Not(HasSubstr("not kept")));
}

class EveryBranch : public testing::TestWithParam<const char*> {};

TEST_P(EveryBranch, IsInTheFile) {
  const TemporaryFolder folder;
  const std::string rounds = GetParam() == std::string{"many"} ? "200" : many_rounds;
  expect_all(record_all(folder / "x.core", {}, {kProgram, GetParam(), rounds}));
}

INSTANTIATE_TEST_SUITE_P(Endings, EveryBranch,
                         testing::Values("alone", "threads", "ended", "many", "exec", "exec-thread",
                                         "timer", "kill", "crash"),
                         [](const auto& ending) {
                           std::string name = ending.param;
                           std::erase(name, '-');
                           return name;
                         });

TEST(AllBranches, AreThereOnABusyMachine) {
  const TemporaryFolder folder;
  const Words spin = shell("while :; do :; done");
  const auto one = start(spin);
  const auto other = start(spin);
  expect_all(record_all(folder / "x.core", {}, {kProgram, "threads", many_rounds}));
  one->signal(SIGKILL);
  other->signal(SIGKILL);
}

/// Checks that the newest branches are in the file and that every missing one is counted.
void expect_the_end(const std::string& file, const Counted& counted) {
  EXPECT_EQ(counted.taken, counted.kept + counted.older + counted.elsewhere)
      << counted.said << counted.info;
  const std::string report = run({BT_BACKTRAIL, "report", file}).output;
  EXPECT_THAT(report, AllOf(ContainsRegex("> +culprit"), HasSubstr("=> SIGSEGV at culprit")));
  if (counted.older != 0) {
    EXPECT_THAT(counted.info, HasSubstr("older ones not kept"));
    EXPECT_THAT(counted.said, HasSubstr("there was no room for the oldest"));
  }
}

TEST(OldBranches, ThatAreSaidToBeLostExisted) {
  const TemporaryFolder folder;
  for (const char* program : {"alone", "threads", "ended", "timer", "crash"}) {
    for (const char* ring : {"64k", "1M", "8M"}) {
      const Counted counted =
          record_and_count(folder / "x.core", {"--ring", ring}, {kProgram, program, many_rounds});
      EXPECT_GE(counted.taken, counted.kept + counted.older)
          << program << ring << counted.said << counted.info;
    }
  }
}

TEST(AllBranches, OfALimitedDiskAreTheNewest) {
  const TemporaryFolder folder;
  const Counted counted =
      record_all(folder / "x.core", {"--max-disk", "300k"}, {kProgram, "ended", many_rounds});
  expect_the_end(folder / "x.core", counted);
  struct stat file {};
  ASSERT_EQ(::stat((folder / "x.core").c_str(), &file), 0);
  EXPECT_LT(file.st_blocks * 512, 400 << 10);
  EXPECT_TRUE(kSanitized || counted.older > counted.kept) << counted.info;
}

/// A mounted disk of a few megabytes.
class SmallDisk {
 public:
  explicit SmallDisk(const std::string& folder) : folder_{folder} {
    mounted_ = ::mkdir(folder.c_str(), 0700) == 0 &&
               ::mount("backtrail-test", folder.c_str(), "tmpfs", 0, "size=8m") == 0;
  }
  ~SmallDisk() {
    if (mounted_) ::umount2(folder_.c_str(), MNT_DETACH);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  [[nodiscard]] bool mounted() const { return mounted_; }
  [[nodiscard]] std::string file(const std::string& name) const { return folder_ + "/" + name; }
  void leave_free(unsigned kilobytes) const {
    constexpr unsigned kAll = 8U << 10U;
    std::ofstream{file("full"), std::ios::binary} << std::string((kAll - kilobytes) << 10U, 'x');
  }

 private:
  std::string folder_;
  bool mounted_ = false;
};

class AlmostFullDisk : public testing::TestWithParam<unsigned> {};

TEST_P(AlmostFullDisk, KeepsTheNewestBranchesAndTheStacks) {
  const TemporaryFolder folder;
  const SmallDisk disk{folder / "disk"};
  if (!disk.mounted()) GTEST_SKIP() << "only root may mount a disk that is soon full";
  disk.leave_free(GetParam());
  const std::string file = disk.file("x.core");
  const Counted all = record_all(file, {}, {kProgram, "ended", many_rounds});
  expect_the_end(file, all);
  EXPECT_THAT(run({"gdb", "-nx", "-q", "-batch", "-ex", "set debuginfod enabled off", "-ex", "bt",
                   kProgram, file})
                  .output,
              AllOf(HasSubstr("culprit"), HasSubstr("main")));
  ::unlink(file.c_str());
  (void)record({"-o", file, "--", kProgram, "ended", many_rounds});
  // Part of the disk is reserved for others, and runs differ a little.
  const std::uint64_t plain =
      sum_of(run({BT_BACKTRAIL, "info", file}).output, "([0-9]+) branches in");
  EXPECT_GT(all.kept, plain / 10 * 8);
}

INSTANTIATE_TEST_SUITE_P(Kilobytes, AlmostFullDisk, testing::Values(500, 1000, 2000, 4000));

/// RLIMIT_FSIZE limits the recorder too, which then steps. Linked statically, the program takes few
/// steps to its start.
TEST(AllBranches, OfAFileThatMayNotGrowAreTheNewest) {
  const TemporaryFolder folder;
  for (const std::string kilobytes : {"150", "300", "1000"}) {
    const std::string script =
        fmt::format("ulimit -f {}; exec {} record --all -o {} -- {}_static alone 300", kilobytes,
                    BT_BACKTRAIL, folder / "x.core", kProgram);
    const std::string said = run({"/bin/bash", "-c", script}).output;
    EXPECT_THAT(said, HasSubstr("SIGSEGV in all_of_it"));
    EXPECT_THAT(run({BT_BACKTRAIL, "report", folder / "x.core"}).output,
                HasSubstr("=> SIGSEGV at culprit"));
    ::unlink((folder / "x.core").c_str());
  }
}

/// The program can still write as long as recorded data can be dropped.
TEST(AllBranches, LeaveThePartOfADiskThatOthersNeed) {
  const TemporaryFolder folder;
  const SmallDisk disk{folder / "disk"};
  if (!disk.mounted()) GTEST_SKIP() << "only root may mount a disk that is soon full";
  disk.leave_free(4000);
  const std::string script =
      fmt::format("{} alone {}; head -c 100000 /dev/zero > {} && echo written", kProgram,
                  many_rounds, disk.file("output"));
  EXPECT_THAT(record({"--all", "-o", disk.file("x.core"), "--", "/bin/sh", "-c", script}).output,
              HasSubstr("written"));
}

}  // namespace
}  // namespace backtrail::test
