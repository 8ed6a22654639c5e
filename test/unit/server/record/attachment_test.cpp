// SPDX-License-Identifier: Apache-2.0
#include "server/record/attachment.hpp"

#include <filesystem>

#include <gtest/gtest.h>

namespace backtrail::server {
namespace {

TEST(AttachmentLine, IsAbsoluteWithoutAProject) {
  EXPECT_EQ(attachment_line("/a/crashes/core", ""), "[[ATTACHMENT|/a/crashes/core]]\n");
  EXPECT_EQ(attachment_line("crashes/core", ""),
            "[[ATTACHMENT|" + (std::filesystem::current_path() / "crashes/core").string() + "]]\n");
}

TEST(AttachmentLine, IsRelativeToTheProject) {
  EXPECT_EQ(attachment_line("/builds/p/crashes/a.core", "/builds/p"),
            "[[ATTACHMENT|crashes/a.core]]\n");
  EXPECT_EQ(attachment_line("/builds/p/crashes/../a.core", "/builds/p/"),
            "[[ATTACHMENT|a.core]]\n");
  EXPECT_EQ(attachment_line("/builds/p2/a.core", "/builds/p"),
            "[[ATTACHMENT|/builds/p2/a.core]]\n");
  EXPECT_EQ(attachment_line("/tmp/a.core", "/builds/p"), "[[ATTACHMENT|/tmp/a.core]]\n");
}

TEST(AttachmentLine, IsEmptyForPathsThatItCannotHold) {
  EXPECT_EQ(attachment_line("", ""), "");
  EXPECT_EQ(attachment_line("/a\nb", ""), "");
  EXPECT_EQ(attachment_line("/a]]b", ""), "");
}

}  // namespace
}  // namespace backtrail::server
