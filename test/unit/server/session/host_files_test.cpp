// SPDX-License-Identifier: Apache-2.0
#include "server/session/host_files.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include <gtest/gtest.h>

namespace backtrail::server {
namespace {

class HostFilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "bt-files-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  std::filesystem::path folder;
  HostFiles files;
};

TEST_F(HostFilesTest, WritesAndReadsBack) {
  const auto file = files.open(folder / "a", O_RDWR | O_CREAT, 0600);
  ASSERT_TRUE(file);
  const std::vector<std::uint8_t> data{1, 2, 3, 4};
  EXPECT_EQ(files.write(*file, data, 2).value(), 4U);
  EXPECT_EQ(files.read(*file, 100, 3).value(), (std::vector<std::uint8_t>{2, 3, 4}));
  EXPECT_EQ(files.status(*file)->st_size, 6);
  EXPECT_TRUE(files.close(*file));
  EXPECT_EQ(files.read(*file, 1, 0).error().code.value(), EINVAL);
  EXPECT_EQ(files.close(*file).error().code.value(), EINVAL);
}

TEST_F(HostFilesTest, ReadsAndRemovesLinks) {
  std::filesystem::create_symlink("target", folder / "link");
  EXPECT_EQ(files.read_link(folder / "link").value(), "target");
  EXPECT_TRUE(S_ISLNK(files.link_status(folder / "link")->st_mode));
  EXPECT_TRUE(files.unlink(folder / "link"));
  EXPECT_EQ(files.unlink(folder / "link").error().code.value(), ENOENT);
}

TEST_F(HostFilesTest, AFifoWithoutWriterHoldsNothingUp) {
  ASSERT_EQ(::mkfifo((folder / "fifo").c_str(), 0600), 0);
  EXPECT_TRUE(files.open(folder / "fifo", O_RDONLY, 0));
}

TEST_F(HostFilesTest, AProcessOfOurNamespaceSeesOurFiles) {
  files.set_file_system(::getpid());
  EXPECT_TRUE(files.open("/proc/self/exe", O_RDONLY, 0));
}

TEST_F(HostFilesTest, AProcessThatIsGoneHasNoFiles) {
  files.set_file_system(0x7fffffff);
  EXPECT_EQ(files.open("/", O_RDONLY, 0).error().code.value(), ENOENT);
}

TEST_F(HostFilesTest, BoundsWhatIsOpen) {
  for (int i = 0; i < 256; ++i) ASSERT_TRUE(files.open("/dev/null", O_RDONLY, 0));
  EXPECT_EQ(files.open("/dev/null", O_RDONLY, 0).error().code.value(), EMFILE);
}

}  // namespace
}  // namespace backtrail::server
