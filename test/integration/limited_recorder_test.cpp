// SPDX-License-Identifier: Apache-2.0
// Recorders under limits that they cannot raise: programs get as much as without a recorder.

#include <cstdlib>
#include <string>
#include <string_view>

#include <unistd.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "record_fixture.hpp"
#include "test/support/effort.hpp"

namespace backtrail::test {
namespace {

/// Returns a command that runs a script as a user who may not raise limits.
Words unprivileged(const std::string& script) {
  Words words = shell(script);
  if (::geteuid() != 0) return words;
  return with({"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"}, words);
}

constexpr std::string_view kRecord = BT_BACKTRAIL " record --source cache -o /dev/null -- ";
constexpr std::string_view kProgram = BT_INFERIOR_DIR "/limits ";

struct Grown {
  int status;
  long megabytes;
};

Grown grow(const std::string& command) {
  const Ran ran = run(unprivileged(command));
  return {ran.status, std::strtol(ran.output.c_str(), nullptr, 10)};
}

/// Skips the test for sanitized builds, which need more address space than any limit allows.
void skip_where_that_cannot_be() {
  if (kSanitized) GTEST_SKIP() << "sanitizers need terabytes of addresses";
  if (run(unprivileged(fmt::format("test -x {}", kProgram))).status != 0) {
    GTEST_SKIP() << "root, and nobody else can execute the build's programs";
  }
}

class LimitedAddresses : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { skip_where_that_cannot_be(); }
};

class LimitedRecorder : public testing::Test {
 protected:
  void SetUp() override { skip_where_that_cannot_be(); }
};

TEST_P(LimitedAddresses, LeavesAllToTheProgram) {
  const std::string limited = fmt::format("ulimit -v {}; ", GetParam());
  // In so little room the recorder steps, and the dynamic linker would take most of the steps.
  const bool steps = GetParam() == std::string{"200000"};
  const std::string program = steps ? BT_INFERIOR_DIR "/limits_static " : std::string{kProgram};
  for (const std::string how : {"grow", "'grow by brk'"}) {
    const Grown native = grow(fmt::format("{}{}{}", limited, program, how));
    const Grown recorded =
        grow(fmt::format("{}{}{}{} 2>/dev/null", limited, kRecord, program, how));
    EXPECT_EQ(native.status, 0);
    EXPECT_EQ(recorded.status, 0);
    EXPECT_GT(native.megabytes, 50);
    EXPECT_NEAR(static_cast<double>(recorded.megabytes), static_cast<double>(native.megabytes), 2)
        << how;
  }
}

INSTANTIATE_TEST_SUITE_P(Kilobytes, LimitedAddresses, testing::Values("2000000", "200000"));

TEST_F(LimitedRecorder, LeavesTheStackRoomToGrow) {
  const auto command =
      fmt::format("ulimit -v 2000000; {}{}'grow down' 2>/dev/null", kRecord, kProgram);
  EXPECT_EQ(grow(command).status, 0);
}

/// Translated code needs a memory file, which the kernel refuses beyond the limit.
TEST_F(LimitedRecorder, OutlivesALimitOfFileSizes) {
  const std::string program = std::string{BT_INFERIOR_DIR} + "/plain_static";
  const Ran native = run(unprivileged(program));
  const Ran recorded =
      run(unprivileged(fmt::format("ulimit -f 100; {}{} 2>/dev/null", kRecord, program)));
  EXPECT_EQ(recorded.status, native.status);
  EXPECT_EQ(recorded.output, native.output);
}

TEST_F(LimitedRecorder, LeavesAllThatAProgramLimitsItselfTo) {
  const auto limited = fmt::format("ulimit -v 200000; exec {}grow", kProgram);
  const Grown native = grow(limited);
  const Grown recorded = grow(fmt::format("{}sh -c '{}' 2>/dev/null", kRecord, limited));
  EXPECT_EQ(recorded.status, 0);
  EXPECT_NEAR(static_cast<double>(recorded.megabytes), static_cast<double>(native.megabytes), 2);
}

}  // namespace
}  // namespace backtrail::test
