// SPDX-License-Identifier: Apache-2.0
#include "ptrace/os/process_files.hpp"

#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test/support/temporary_folder.hpp"

namespace backtrail::tracee {
namespace {

TEST(ProcessFiles, AMappedFileIsFoundWithItsFacts) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "file";
  std::ofstream{path} << "text";
  struct stat expected {};
  ASSERT_EQ(::stat(path.c_str(), &expected), 0);
  struct stat facts {};
  const auto found = find_mapped_file(::getpid(), path, expected.st_ino, expected.st_dev, &facts);
  ASSERT_TRUE(found);
  EXPECT_EQ(facts.st_ino, expected.st_ino);
  EXPECT_EQ(facts.st_size, 4);
  EXPECT_EQ(find_mapped_file(::getpid(), path, expected.st_ino, expected.st_dev), found);
  EXPECT_FALSE(find_mapped_file(::getpid(), path, expected.st_ino + 1, expected.st_dev));
}

}  // namespace
}  // namespace backtrail::tracee
