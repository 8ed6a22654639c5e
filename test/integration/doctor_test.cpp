// SPDX-License-Identifier: Apache-2.0
// `backtrail doctor` on this machine, whatever its abilities.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include "test/support/subprocess.hpp"

namespace backtrail::test {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

void compares(const std::vector<std::string>& words) {
  Subprocess doctor{
      {.arguments = words, .environment = test_environment(), .working_directory = {}}};
  const auto status = doctor.wait(deadline_in(std::chrono::seconds{100}));
  ASSERT_TRUE(status);
  const std::string& text = doctor.output().text();
  EXPECT_EQ(WEXITSTATUS(*status), 0) << text;
  EXPECT_THAT(text, HasSubstr("auto takes"));
  EXPECT_THAT(text, ContainsRegex("step +[0-9.]+ ms +[0-9]+ branches"));
  EXPECT_THAT(text, ContainsRegex("cache +[0-9.]+ ms +equal in all [0-9]+ branches"));
  EXPECT_THAT(text, Not(HasSubstr("differs")));
}

TEST(Doctor, ComparesWhatWorksHereWithStep) {
  compares({BT_BACKTRAIL, "doctor"});
}

TEST(Doctor, ComparesWhereAddressesAreRandom) {
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
  GTEST_SKIP() << "AddressSanitizer hashes addresses: its branches are others each time";
#endif
#endif
  compares({BT_INFERIOR_DIR "/filtered", "container", BT_BACKTRAIL, "doctor"});
}

}  // namespace
}  // namespace backtrail::test
