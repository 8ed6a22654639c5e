// SPDX-License-Identifier: Apache-2.0
#include "server/rsp/error_reply.hpp"

#include <cerrno>

#include <gtest/gtest.h>

namespace backtrail::server::rsp {
namespace {

TEST(ErrorReply, NumbersHaveTwoDigits) {
  EXPECT_EQ(error_reply(), "E01");
  EXPECT_EQ(error_reply(std::uint8_t{0}), "E00");
  EXPECT_EQ(error_reply(std::uint8_t{0xab}), "Eab");
}

TEST(ErrorReply, FormDecides) {
  const Error error = make_error(TraceErrc::kNotEnabled, "read trace");
  EXPECT_EQ(error_reply(error), "E01");
  EXPECT_EQ(error_reply(error, ErrorForm::kText), "E.read trace: branch tracing is not enabled");
}

TEST(ErrorReply, SystemErrorsCarryTheirNumber) {
  const std::string reply = error_reply(errno_error(EPERM, "open"), ErrorForm::kText);
  EXPECT_EQ(reply, "E.open: Operation not permitted (1)");
}

TEST(ErrorReply, TextNeverBreaksFraming) {
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  const std::string reply = error_text_reply(all);
  EXPECT_EQ(reply.size(), all.size() + 2);
  EXPECT_EQ(reply.find_first_of("#$}*"), std::string::npos);
  for (const char c : reply) EXPECT_TRUE(c >= ' ' && c <= '~') << static_cast<int>(c);
}

TEST(ErrorReply, TextIsBoundedAndNeverEmpty) {
  EXPECT_EQ(error_text_reply(""), "E01");
  EXPECT_LE(error_text_reply(std::string(100000, 'x')).size(), 502U);
}

}  // namespace
}  // namespace backtrail::server::rsp
