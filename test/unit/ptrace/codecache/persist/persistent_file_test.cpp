// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/persist/persistent_file.hpp"

#include <array>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ptrace/codecache/persist/persistent_store.hpp"
#include "ptrace/os/unique_fd.hpp"
#include "test/support/temporary_folder.hpp"

namespace backtrail::tracee::cache {
namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes written(const PersistentPieces& parts) {
  const UniqueFd fd{::memfd_create("kept", MFD_CLOEXEC)};
  EXPECT_TRUE(write_persistent(fd.get(), "key", parts));
  Bytes bytes(static_cast<std::size_t>(::lseek(fd.get(), 0, SEEK_END)));
  EXPECT_EQ(::pread(fd.get(), bytes.data(), bytes.size(), 0), std::ssize(bytes));
  return bytes;
}

/// One superblock with one exit; the code is larger than the piece that is written at once.
class PersistentFile : public testing::Test {
 protected:
  PersistentFile() {
    code_.back() = 0xc3;
    block_[0] = {.start = TraceeAddr{0x1000}, .logged = 0, .row_bytes = 3, .size = 9};
    logged_[0] = {.start = TraceeAddr{0x1000}};
    exit_[0] = {.from = 4, .to = -0x800};
    weight_[0] = {.branches = 1, .instructions = 2};
  }
  [[nodiscard]] PersistentPieces pieces() const {
    const std::span<const std::uint8_t> code = code_;
    return {.modules = {},
            .code = {code.first(100), code.subspan(100)},
            .blocks = {block_},
            .pc_map = {pc_map_},
            .logged = {logged_},
            .branches = {},
            .exits = {exit_},
            .weights = {weight_},
            .places = {places_},
            .ib_entries = {},
            .translations = {},
            .crossing = {crossing_},
            .values = {},
            .value_offsets = {},
            .first_values = {},
            .exit_values = {}};
  }
  Bytes code_ = Bytes(1'000'003, 0x90);
  std::array<CodeBlock, 1> block_{};
  std::array<std::uint8_t, 3> pc_map_{};
  std::array<decoder::LoggedBlock, 1> logged_{};
  std::array<decoder::PackedExit, 1> exit_{};
  std::array<decoder::ExitWeight, 1> weight_{};
  std::array<ExitPlace, 1> places_{};
  std::array<std::uint32_t, 1> crossing_{};
};

TEST_F(PersistentFile, IsReadAsItWasWritten) {
  const Bytes bytes = written(pieces());
  const auto code = PersistentCode::from_bytes(bytes, "key", nullptr, false);
  ASSERT_NE(code, nullptr);
  EXPECT_TRUE(std::equal(code_.begin(), code_.end(), code->parts().code.begin()));
  const decoder::ExitTable exits{code->exits(code)};
  EXPECT_EQ(exits.next_exit_id(), 1U);
  const auto exit = exits.find(0);
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->from, TraceeAddr{0x1004});
  EXPECT_EQ(exit->to, TraceeAddr{0x800});
  EXPECT_EQ(exit->executed, 2);
  EXPECT_EQ(PersistentCode::from_bytes(bytes, "other key", nullptr, false), nullptr);
}

TEST_F(PersistentFile, IsOfNoUseWithAnyByteChangedOrMissing) {
  const Bytes bytes = written(pieces());
  for (const std::size_t at :
       {std::size_t{0}, std::size_t{9}, std::size_t{30}, std::size_t{500'000}, bytes.size() - 20}) {
    Bytes other = bytes;
    other[at] ^= 4U;
    EXPECT_EQ(PersistentCode::from_bytes(other, "key", nullptr, false), nullptr) << at;
  }
  EXPECT_EQ(
      PersistentCode::from_bytes(std::span{bytes}.first(bytes.size() - 8), "key", nullptr, false),
      nullptr);
}

TEST_F(PersistentFile, WhatLeadsOutOfItIsRefused) {
  const auto refused = [&] {
    const Bytes bytes = written(pieces());
    return PersistentCode::from_bytes(bytes, "key", nullptr, false) == nullptr;
  };
  EXPECT_FALSE(refused());
  exit_[0].block_and_kind = 1U << decoder::PackedExit::kKindBits;
  EXPECT_TRUE(refused());
  exit_[0].block_and_kind = 0;
  weight_[0].branches = 2;  // one branch inside, but there is none
  EXPECT_TRUE(refused());
  weight_[0].branches = 1;
  logged_[0].first_branch = 1;
  EXPECT_TRUE(refused());
  logged_[0].first_branch = 0;
  block_[0].row_bytes = 4;
  EXPECT_TRUE(refused());
  block_[0].row_bytes = 3;
  crossing_[0] = 1;
  EXPECT_TRUE(refused());
}

/// The superblock records two values, one of which comes before its exit.
class PersistentFileWithValues : public PersistentFile {
 protected:
  PersistentFileWithValues() { block_[0].side_exits_at = 8; }
  [[nodiscard]] std::shared_ptr<const PersistentCode> read() const {
    PersistentPieces parts = pieces();
    parts.values = {values_};
    parts.value_offsets = {offsets_};
    parts.first_values = {first_};
    parts.exit_values = {before_exit_};
    const auto bytes = std::make_shared<Bytes>(written(parts));
    return PersistentCode::from_bytes(*bytes, "key", bytes, false);
  }
  std::array<decoder::LoggedValue, 2> values_{
      decoder::LoggedValue{.pc = 4, .passed = 0, .kind = 15},
      decoder::LoggedValue{.pc = 6, .passed = 0, .kind = 0}};
  std::array<std::uint16_t, 2> offsets_{3, 7};
  std::vector<std::uint32_t> first_{0};
  std::vector<std::uint16_t> before_exit_{1};
};

TEST_F(PersistentFileWithValues, IsReadAsItWasWritten) {
  const auto code = read();
  ASSERT_NE(code, nullptr);
  EXPECT_TRUE(code->records_values());
  EXPECT_EQ(code->parts().value_offsets[1], 7);
  const decoder::ExitTable exits{code->exits(code)};
  const auto values = exits.values().of_block(0);
  ASSERT_EQ(values.size(), 2U);
  EXPECT_EQ(values[0].pc, 4);
  EXPECT_EQ(values[0].kind, 15);
  EXPECT_EQ(exits.values().before_exit(0), 1);
  EXPECT_TRUE(exits.values().of_block(1).empty());
}

TEST_F(PersistentFileWithValues, MayHaveValuesOfOverwrittenBytes) {
  values_[1].kind = arch::kind_of({7, 8});
  const auto code = read();
  ASSERT_NE(code, nullptr);
  EXPECT_EQ(code->parts().values[1].kind, values_[1].kind);
}

TEST_F(PersistentFileWithValues, IsRefusedIfAValueIsOfAnUnknownKind) {
  values_[1].kind = arch::kValueKinds;
  EXPECT_EQ(read(), nullptr);
}

TEST_F(PersistentFileWithValues, IsRefusedIfAValueComesAfterBranchesThatThereAreNot) {
  values_[1].passed = 1;
  EXPECT_EQ(read(), nullptr);
}

TEST_F(PersistentFileWithValues, IsRefusedIfValuesAreNotInOrder) {
  const std::array<decoder::NearBranch, 1> branch{};
  logged_[0].branches = 1;
  PersistentPieces parts = pieces();
  parts.branches = {branch};
  parts.values = {values_};
  parts.value_offsets = {offsets_};
  parts.first_values = {first_};
  parts.exit_values = {before_exit_};
  const auto is_refused = [&] {
    return PersistentCode::from_bytes(written(parts), "key", nullptr, false) == nullptr;
  };
  EXPECT_FALSE(is_refused());
  values_[1].passed = 1;
  EXPECT_FALSE(is_refused());
  values_ = {values_[1], values_[0]};
  EXPECT_TRUE(is_refused());
}

TEST_F(PersistentFileWithValues, IsRefusedIfOffsetsAreNotInOrder) {
  offsets_ = {7, 3};
  EXPECT_EQ(read(), nullptr);
}

TEST_F(PersistentFileWithValues, IsRefusedIfAnOffsetIsAmongTheExits) {
  offsets_[1] = 9;
  EXPECT_EQ(read(), nullptr);
}

TEST_F(PersistentFileWithValues, IsRefusedIfTheExitsAreBeyondTheCode) {
  block_[0].side_exits_at = 10;
  EXPECT_EQ(read(), nullptr);
}

TEST_F(PersistentFileWithValues, IsRefusedIfAnIndexLeadsOutOfIt) {
  first_ = {3};
  EXPECT_EQ(read(), nullptr);
}

TEST_F(PersistentFileWithValues, IsRefusedIfAnExitComesAfterMoreValuesThanThereAre) {
  before_exit_ = {3};
  EXPECT_EQ(read(), nullptr);
}

TEST_F(PersistentFileWithValues, IsRefusedIfAnArrayIsTooShortOrTooLong) {
  first_ = {};
  EXPECT_EQ(read(), nullptr);
  first_ = {0, 0};
  EXPECT_EQ(read(), nullptr);
  first_ = {0};
  before_exit_ = {};
  EXPECT_EQ(read(), nullptr);
  before_exit_ = {1, 1};
  EXPECT_EQ(read(), nullptr);
  before_exit_ = {1};
  EXPECT_NE(read(), nullptr);
  PersistentPieces parts = pieces();
  parts.value_offsets = {offsets_};
  EXPECT_EQ(PersistentCode::from_bytes(written(parts), "key", nullptr, false), nullptr);
  parts.value_offsets = {std::span{offsets_}.first(1)};
  parts.values = {values_};
  parts.first_values = {first_};
  parts.exit_values = {before_exit_};
  EXPECT_EQ(PersistentCode::from_bytes(written(parts), "key", nullptr, false), nullptr);
}

TEST_F(PersistentFile, TooLargeAFileIsNotWritten) {
  PersistentPieces many = pieces();
  many.code.assign(kMostPersistentFileBytes / code_.size() + 1, code_);
  const UniqueFd fd{::open("/dev/null", O_WRONLY | O_CLOEXEC)};
  EXPECT_FALSE(write_persistent(fd.get(), "key", many));
}

TEST_F(PersistentFile, IsGoneOnceItIsForgotten) {
  const test::TemporaryFolder parent;
  {
    PersistentStore store{parent / "kept"};
    store.put("key", pieces());
    store.put("other", pieces());
    EXPECT_NE(store.find("key"), nullptr);
    store.forget("key");
    EXPECT_EQ(store.find("key"), nullptr);
  }
  PersistentStore later{parent / "kept"};
  EXPECT_EQ(later.find("key"), nullptr);
  EXPECT_NE(later.find("other"), nullptr);
}

}  // namespace
}  // namespace backtrail::tracee::cache
