// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/persist/file_identities.hpp"

#include <fstream>
#include <sstream>
#include <string>

#include <fcntl.h>
#include <gtest/gtest.h>

#include "arch/base/page.hpp"
#include "ptrace/os/unique_fd.hpp"
#include "test/support/temporary_folder.hpp"

namespace backtrail::tracee::cache {
namespace {

namespace fs = std::filesystem;

class FileIdentitiesTest : public testing::Test {
 protected:
  static std::optional<std::uint64_t> of(FileIdentities& identities, const fs::path& file) {
    const UniqueFd fd{::open(file.c_str(), O_RDONLY | O_CLOEXEC)};
    struct stat facts {};
    EXPECT_EQ(::fstat(fd.get(), &facts), 0);
    return identities.of(fd.get(), facts, true);
  }
  std::optional<std::uint64_t> of(const fs::path& file) { return of(identities_, file); }
  fs::path write(const std::string& name, const std::string& text) {
    std::ofstream{folder_ / name, std::ios::binary} << text;
    return folder_ / name;
  }

  test::TemporaryFolder folder_;
  FileIdentities identities_{folder_ / "note"};
};

TEST_F(FileIdentitiesTest, CopiesOfAFileAreTheSame) {
  const fs::path copy = folder_ / "copy";
  fs::copy_file("/proc/self/exe", copy);
  EXPECT_TRUE(of(copy));
  EXPECT_EQ(of(copy), of("/proc/self/exe"));
}

TEST_F(FileIdentitiesTest, OtherCodeIsAnotherFile) {
  const fs::path copy = folder_ / "copy";
  fs::copy_file("/proc/self/exe", copy);
  // The code of this test is somewhere in the middle: change a byte in every page.
  const auto before = of(copy);
  {
    std::fstream file{copy, std::ios::in | std::ios::out | std::ios::binary};
    for (std::uint64_t at = 8192; at < fs::file_size(copy); at += 4096) {
      file.seekp(static_cast<std::streamoff>(at));
      file.put('x');
    }
  }
  EXPECT_NE(of(copy), before);
}

TEST_F(FileIdentitiesTest, FilesThatAreNoProgramsCountWhole) {
  const auto one = of(write("one", std::string(100'000, 'a') + "b"));
  EXPECT_EQ(of(write("same", std::string(100'000, 'a') + "b")), one);
  EXPECT_NE(of(write("last", std::string(100'000, 'a') + "c")), one);
  EXPECT_NE(of(write("longer", std::string(100'001, 'a') + "b")), one);
  EXPECT_TRUE(of(write("empty", "")));
}

TEST_F(FileIdentitiesTest, AreRememberedInANote) {
  const auto identity = of("/proc/self/exe");
  EXPECT_TRUE(identities_.has_news());
  identities_.save();
  EXPECT_FALSE(identities_.has_news());
  FileIdentities later{folder_ / "note"};
  EXPECT_EQ(of(later, "/proc/self/exe"), identity);
  EXPECT_FALSE(later.has_news());
}

TEST_F(FileIdentitiesTest, NotesOfOtherMachinesAndDamagedOnesAreIgnored) {
  const auto identity = of("/proc/self/exe");
  identities_.save();
  std::ifstream saved{folder_ / "note"};
  std::string boot;
  std::string line;
  ASSERT_TRUE(std::getline(saved, boot) && std::getline(saved, line));
  const std::string facts = line.substr(0, line.rfind(' '));
  const auto with_note = [&](const std::string& text) {
    write("note", text);
    FileIdentities later{folder_ / "note"};
    return of(later, "/proc/self/exe");
  };
  EXPECT_EQ(with_note(boot + '\n' + facts + " 6\n"), 6);
  EXPECT_EQ(with_note("another\n" + facts + " 6\n"), identity);
  for (const char* damaged : {"", "x"}) EXPECT_EQ(with_note(damaged), identity);
}

TEST_F(FileIdentitiesTest, FilesThatAreStillUsedStayInTheNote) {
  const auto identity = of("/proc/self/exe");
  identities_.save();
  std::ifstream saved{folder_ / "note"};
  std::string boot;
  ASSERT_TRUE(std::getline(saved, boot));
  std::ostringstream note;
  note << boot << '\n';
  for (int i = 0; i < 150; ++i) note << "0 " << std::hex << i << " 1 1 1 6\n";
  write("note", note.str());
  FileIdentities full{folder_ / "note"};
  EXPECT_EQ(of(full, "/proc/self/exe"), identity);
  full.save();
  FileIdentities later{folder_ / "note"};
  EXPECT_EQ(of(later, "/proc/self/exe"), identity);
  EXPECT_FALSE(later.has_news());
}

TEST_F(FileIdentitiesTest, AreKnownForWhatTheyWereFoundToCover) {
  struct stat facts {};
  ASSERT_EQ(::stat("/proc/self/exe", &facts), 0);
  identities_.note_covered(facts, 0, kPageBytes);
  EXPECT_FALSE(identities_.known(facts, 0, kPageBytes)) << "nobody has read the file";
  const auto identity = of("/proc/self/exe");
  EXPECT_FALSE(identities_.known(facts, 0, kPageBytes));
  identities_.note_covered(facts, 0, kPageBytes);
  EXPECT_EQ(identities_.known(facts, 0, kPageBytes), identity);
  EXPECT_FALSE(identities_.known(facts, kPageBytes, kPageBytes));
  EXPECT_FALSE(identities_.known(facts, 0, 2 * kPageBytes));
  ++facts.st_ctim.tv_nsec;
  EXPECT_FALSE(identities_.known(facts, 0, kPageBytes)) << "it was written since";
}

TEST_F(FileIdentitiesTest, CoverCodeAndNothingElseOfAProgram) {
  const UniqueFd fd{::open("/proc/self/exe", O_RDONLY | O_CLOEXEC)};
  struct stat facts {};
  ASSERT_EQ(::fstat(fd.get(), &facts), 0);
  const auto size = static_cast<std::uint64_t>(facts.st_size);
  EXPECT_TRUE(identity_covers(fd.get(), size, 0, kPageBytes));
  EXPECT_FALSE(identity_covers(fd.get(), size, page_begin(size), kPageBytes));
  const fs::path text = write("text", std::string(10'000, 'a'));
  const UniqueFd other{::open(text.c_str(), O_RDONLY | O_CLOEXEC)};
  EXPECT_TRUE(identity_covers(other.get(), 10'000, 8192, kPageBytes));
  EXPECT_FALSE(identity_covers(other.get(), 10'000, 12288, kPageBytes));
}

}  // namespace
}  // namespace backtrail::tracee::cache
