// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/persist/fixed_view.hpp"

#include <algorithm>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "test/support/temporary_folder.hpp"

namespace backtrail::tracee::cache {
namespace {

constexpr std::size_t kBytes = 3 * 4096 + 100;

class FixedViewTest : public testing::Test {
 protected:
  FixedViewTest() {
    const UniqueFd file = open(O_WRONLY | O_CREAT);
    const std::vector<char> text(kBytes, 'a');
    EXPECT_EQ(::write(file.get(), text.data(), text.size()), std::ssize(text));
  }
  [[nodiscard]] UniqueFd open(int flags) const {
    return UniqueFd{::open(path_.c_str(), flags | O_CLOEXEC, 0600)};
  }
  [[nodiscard]] std::unique_ptr<FixedView> view() const {
    auto made = std::make_unique<FixedView>(open(O_RDONLY));
    EXPECT_TRUE(made->map(false));
    return made;
  }
  static bool is_as_written(const FixedView& view) {
    return view.bytes().size() == kBytes &&
           std::ranges::all_of(view.bytes(), [](std::uint8_t byte) { return byte == 'a'; });
  }
  void overwrite() const {
    const UniqueFd file = open(O_WRONLY);
    const std::vector<char> text(kBytes, 'b');
    EXPECT_EQ(::write(file.get(), text.data(), text.size()), std::ssize(text));
  }
  test::TemporaryFolder folder_;
  std::string path_ = folder_.path() + "/file";
};

TEST_F(FixedViewTest, IsTheFile) {
  const auto one = view();
  EXPECT_TRUE(is_as_written(*one));
  EXPECT_TRUE(one->is_as_it_was());
  EXPECT_EQ(one->facts().st_size, static_cast<off_t>(kBytes));
}

TEST_F(FixedViewTest, OutlivesItsFilesBytes) {
  const auto one = view();
  const auto other = view();
  ASSERT_EQ(::truncate(path_.c_str(), 0), 0);
  EXPECT_TRUE(is_as_written(*one));
  EXPECT_TRUE(is_as_written(*other));
  EXPECT_TRUE(one->is_as_it_was());
}

TEST_F(FixedViewTest, DoesNotFollowWrites) {
  const auto one = view();
  overwrite();
  EXPECT_TRUE(is_as_written(*one));
}

TEST_F(FixedViewTest, OutlivesATruncationByAnotherThread) {
  const auto one = view();
  std::thread other{[&] { EXPECT_EQ(::truncate(path_.c_str(), 0), 0); }};
  other.join();
  EXPECT_TRUE(is_as_written(*one));
}

TEST_F(FixedViewTest, IsACopyOfAFileThatIsOpenForWriting) {
  const UniqueFd writer = open(O_RDWR);
  const auto one = view();
  EXPECT_TRUE(one->is_as_it_was());
  ASSERT_EQ(::ftruncate(writer.get(), 0), 0);
  EXPECT_TRUE(is_as_written(*one));
  EXPECT_FALSE(one->is_as_it_was());
}

TEST_F(FixedViewTest, IsACopyWhereTheSignalIsBlocked) {
  sigset_t signal{};
  sigset_t before{};
  sigemptyset(&signal);
  sigaddset(&signal, SIGURG);
  ::pthread_sigmask(SIG_BLOCK, &signal, &before);
  const auto one = view();
  ASSERT_EQ(::truncate(path_.c_str(), 0), 0);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  EXPECT_TRUE(is_as_written(*one));
}

TEST_F(FixedViewTest, TellsThatTheFileChangedBeforeItWasMapped) {
  FixedView one{open(O_RDONLY)};
  overwrite();
  ASSERT_TRUE(one.map(false));
  EXPECT_FALSE(one.is_as_it_was());
}

TEST_F(FixedViewTest, OfAFileThatShrankBeforeIsNone) {
  FixedView one{open(O_RDONLY)};
  ASSERT_EQ(::truncate(path_.c_str(), 0), 0);
  EXPECT_FALSE(one.map(false));
  EXPECT_TRUE(one.bytes().empty());
}

TEST_F(FixedViewTest, MayBeOneOfMany) {
  std::vector<std::unique_ptr<FixedView>> views;
  for (std::size_t i = 0; i < FixedView::kMostLeases + 2; ++i) views.push_back(view());
  ASSERT_EQ(::truncate(path_.c_str(), 0), 0);
  EXPECT_TRUE(std::ranges::all_of(views, [](const auto& each) { return is_as_written(*each); }));
}

TEST_F(FixedViewTest, LetsTheFileGo) {
  (void)view();
  overwrite();
  EXPECT_FALSE(is_as_written(*view()));
}

TEST_F(FixedViewTest, TakesSealedMemory) {
  UniqueFd memory{::memfd_create("view", MFD_CLOEXEC | MFD_ALLOW_SEALING)};
  const std::string text = "sealed";
  ASSERT_EQ(::write(memory.get(), text.data(), text.size()), std::ssize(text));
  ASSERT_EQ(::fcntl(memory.get(), F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK), 0);
  FixedView one{std::move(memory)};
  ASSERT_TRUE(one.map(true));
  EXPECT_TRUE(std::ranges::equal(one.bytes(), text));
  EXPECT_TRUE(one.is_as_it_was());
}

}  // namespace
}  // namespace backtrail::tracee::cache
