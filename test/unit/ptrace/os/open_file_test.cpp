// SPDX-License-Identifier: Apache-2.0
#include "ptrace/os/open_file.hpp"

#include <algorithm>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "ptrace/os/unique_fd.hpp"

namespace backtrail::tracee {
namespace {

std::optional<OpenFile> own(const UniqueFd& fd) {
  return open_file(::getpid(), fd.get());
}

TEST(OpenFile, TellsMemoryFromOtherFiles) {
  const std::string mine = "/proc/" + std::to_string(::getpid()) + "/mem";
  for (const std::string& path :
       {mine, std::string{"/proc/self/mem"}, std::string{"/proc/thread-self/mem"}}) {
    const UniqueFd fd{::open(path.c_str(), O_RDWR | O_CLOEXEC)};
    const auto file = own(fd);
    ASSERT_TRUE(file) << path;
    EXPECT_TRUE(file->is_memory) << path;
    EXPECT_TRUE(file->writes) << path;
    EXPECT_EQ(file->memory_of, ::getpid()) << path;
  }
  const UniqueFd readable{::open("/proc/self/mem", O_RDONLY | O_CLOEXEC)};
  EXPECT_FALSE(own(readable)->writes);
  const UniqueFd other{::memfd_create("mem", MFD_CLOEXEC)};
  EXPECT_FALSE(own(other)->is_memory);
  EXPECT_TRUE(own(other)->is_regular);
}

TEST(OpenFile, IsNoneWithoutADescriptor) {
  EXPECT_FALSE(open_file(::getpid(), 987654));
  EXPECT_FALSE(file_position(::getpid(), 987654));
}

TEST(OpenFile, KnowsThePosition) {
  const UniqueFd fd{::memfd_create("file", MFD_CLOEXEC)};
  ASSERT_EQ(::lseek(fd.get(), 0x123456789, SEEK_SET), 0x123456789);
  EXPECT_EQ(file_position(::getpid(), fd.get()), 0x123456789U);
}

TEST(OpenFile, ListsWhatIsOpenForWriting) {
  const UniqueFd written{::memfd_create("written", MFD_CLOEXEC)};
  const UniqueFd readable{::open("/proc/self/exe", O_RDONLY | O_CLOEXEC)};
  const auto files = files_open_for_writing(::getpid());
  const auto has = [&](const UniqueFd& fd) {
    return std::any_of(files.begin(), files.end(),
                       [&](const OpenFile& file) { return file.inode == own(fd)->inode; });
  };
  EXPECT_TRUE(has(written));
  EXPECT_FALSE(has(readable));
}

}  // namespace
}  // namespace backtrail::tracee
