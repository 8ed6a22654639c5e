// SPDX-License-Identifier: Apache-2.0
#include "arch/base/file_bytes.hpp"

#include <fstream>
#include <thread>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "test/support/temporary_folder.hpp"

namespace backtrail {
namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes numbered(std::size_t size) {
  Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::uint8_t>(i * 7 + i / 251);
  return bytes;
}

void write_all(const std::string& path, const Bytes& bytes) {
  std::ofstream{path, std::ios::binary}.write(reinterpret_cast<const char*>(bytes.data()),
                                              static_cast<std::streamsize>(bytes.size()));
}

TEST(FileBytes, AreAllOfThem) {
  const test::TemporaryFolder folder;
  for (const std::size_t size : {0UL, 1UL, (1UL << 20U) - 1, 1UL << 20U, (5UL << 20U) + 3}) {
    const Bytes bytes = numbered(size);
    write_all(folder / "file", bytes);
    EXPECT_EQ(file_bytes(folder / "file").value(), bytes) << size;
  }
}

TEST(FileBytes, ComeFromPipesToo) {
  const test::TemporaryFolder folder;
  const Bytes bytes = numbered(3'000'000);
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  std::thread writer{[&] { write_all(folder / "pipe", bytes); }};
  EXPECT_EQ(file_bytes(folder / "pipe").value(), bytes);
  writer.join();
}

TEST(FileBytes, AreNoneOfWhatCannotBeRead) {
  const test::TemporaryFolder folder;
  EXPECT_EQ(file_bytes(folder / "absent").error().code, std::errc::no_such_file_or_directory);
  EXPECT_EQ(file_bytes(folder.path()).error().code, std::errc::is_a_directory);
}

}  // namespace
}  // namespace backtrail
