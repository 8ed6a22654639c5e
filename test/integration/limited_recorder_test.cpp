// Recorders under limits that they cannot raise: programs get as much as without them.

#include <cstdlib>
#include <string>

#include <unistd.h>

#include <gtest/gtest.h>

#include "record_fixture.hpp"

namespace backtrail::test {
namespace {

/// As somebody who may not raise limits.
Words unprivileged(const std::string& script) {
  const Words words = shell(script);
  if (::geteuid() != 0) return words;
  return with({"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"}, words);
}

const std::string kRecord = std::string{BT_BACKTRAIL} + " record --source cache -o /dev/null -- ";
const std::string kProgram = std::string{BT_INFERIOR_DIR} + "/limits ";

struct Grown {
  int status;
  long megabytes;
};

Grown grow(const std::string& command) {
  const Ran ran = run(unprivileged(command));
  return {ran.status, std::strtol(ran.output.c_str(), nullptr, 10)};
}

class LimitedAddresses : public testing::TestWithParam<const char*> {};

TEST_P(LimitedAddresses, LeavesAllToTheProgram) {
  const std::string limited = std::string{"ulimit -v "} + GetParam() + "; ";
  for (const std::string how : {"grow", "'grow by brk'"}) {
    const Grown native = grow(limited + kProgram + how);
    const Grown recorded = grow(limited + kRecord + kProgram + how + " 2>/dev/null");
    EXPECT_EQ(native.status, 0);
    EXPECT_EQ(recorded.status, 0);
    EXPECT_GT(native.megabytes, 50);
    EXPECT_NEAR(static_cast<double>(recorded.megabytes), static_cast<double>(native.megabytes), 2)
        << how;
  }
}

INSTANTIATE_TEST_SUITE_P(Kilobytes, LimitedAddresses, testing::Values("2000000", "200000"));

TEST(LimitedRecorder, LeavesTheStackRoomToGrow) {
  const std::string limited = "ulimit -v 2000000; " + kRecord + kProgram;
  EXPECT_EQ(grow(limited + "'grow down' 2>/dev/null").status, 0);
}

/// What translated code needs is a file to the kernel, and cannot be made then.
TEST(LimitedRecorder, OutlivesALimitOfFileSizes) {
  const std::string program = std::string{BT_INFERIOR_DIR} + "/plain_static";
  const Ran native = run(unprivileged(program));
  const Ran recorded = run(unprivileged("ulimit -f 100; " + kRecord + program + " 2>/dev/null"));
  EXPECT_EQ(recorded.status, native.status);
  EXPECT_EQ(recorded.output, native.output);
}

TEST(UnlimitedRecorder, LeavesAllThatAProgramLimitsItselfTo) {
  const std::string limited = "ulimit -v 200000; exec " + kProgram + "grow";
  const Grown native = grow(limited);
  const Grown recorded = grow(kRecord + "sh -c '" + limited + "' 2>/dev/null");
  EXPECT_EQ(recorded.status, 0);
  EXPECT_NEAR(static_cast<double>(recorded.megabytes), static_cast<double>(native.megabytes), 2);
}

}  // namespace
}  // namespace backtrail::test
