// SPDX-License-Identifier: Apache-2.0
// `backtrail record` uses the memory of processes that have ended for the next ones.

#include <algorithm>
#include <set>
#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "record_fixture.hpp"
#include "test/support/temporary_folder.hpp"

namespace backtrail::test {
namespace {

using testing::HasSubstr;

constexpr int kProcesses = 8;

/// Prints the inode of the recorder's memory in each of kProcesses processes.
constexpr const char* kShow =
    "for i in 1 2 3 4 5 6 7 8; do "
    "awk '/memfd:backtrail/ { print \"inode\", $5; exit }' /proc/self/maps; done; echo end";

/// Returns the inodes that were printed.
std::multiset<std::string> inodes(const std::string& output) {
  std::multiset<std::string> found;
  std::istringstream words{output};
  for (std::string word; words >> word;) {
    if (word == "inode" && words >> word) found.insert(word);
  }
  return found;
}

std::size_t kinds(const std::multiset<std::string>& inodes) {
  return std::set<std::string>{inodes.begin(), inodes.end()}.size();
}

TEST(SpareMemory, IsThatOfProcessesThatHaveEnded) {
  const Ran recorded = record(with({"--"}, shell(kShow)));
  EXPECT_EQ(recorded.status, 0);
  const auto found = inodes(recorded.output);
  EXPECT_EQ(found.size(), static_cast<std::size_t>(kProcesses)) << recorded.output;
  // The shell has its own; its child's may still be in use when the child runs its program.
  EXPECT_LE(kinds(found), 3U) << recorded.output;
}

TEST(SpareMemory, IsNotForProgramsThatRecordValues) {
  const TemporaryFolder folder;
  const Ran recorded =
      record(with({"--values=most", "-o", folder.path() + "/core", "--"}, shell(kShow)));
  EXPECT_EQ(recorded.status, 0);
  EXPECT_EQ(kinds(inodes(recorded.output)), static_cast<std::size_t>(kProcesses))
      << recorded.output;
}

/// Processes that cannot open the recorder's files get memory as before.
class SpareMemoryOutOfReach : public testing::TestWithParam<Words> {};

TEST_P(SpareMemoryOutOfReach, DoesNoHarm) {
  const Words program = with(GetParam(), shell(kShow));
  const Ran attempt = run(with(GetParam(), {"true"}));
  if (attempt.status != 0) GTEST_SKIP() << "not here: " << GetParam().front();
  const Ran recorded = record(with({"--"}, program));
  EXPECT_EQ(recorded.status, 0);
  EXPECT_THAT(recorded.output, HasSubstr("end\n"));
  EXPECT_EQ(kinds(inodes(recorded.output)), static_cast<std::size_t>(kProcesses))
      << recorded.output;
}

INSTANTIATE_TEST_SUITE_P(Processes, SpareMemoryOutOfReach,
                         testing::Values(Words{"unshare", "--pid", "--fork", "--mount-proc"},
                                         Words{"unshare", "--map-root-user", "--pid", "--fork",
                                               "--mount-proc"},
                                         Words{"setpriv", "--reuid=65534", "--clear-groups"}),
                         [](const auto& words) {
                           std::string name = words.param.front() + std::to_string(words.index);
                           return name;
                         });

}  // namespace
}  // namespace backtrail::test
