// SPDX-License-Identifier: Apache-2.0
#include "ptrace/tracee/link_map.hpp"

#include <cstring>
#include <map>
#include <random>

#include <elf.h>
#include <gtest/gtest.h>

namespace backtrail::tracee {
namespace {

using literals::operator""_ta;  // NOLINT(misc-unused-using-decls): literals count as unused

constexpr std::uint64_t kBase = 0x5000;     // load bias of the program
constexpr std::uint64_t kDynamic = 0x6000;  // address of its dynamic section
constexpr std::uint64_t kDebug = 0x7000;

// A memory image of little-endian words of one width, and the auxv that leads to it.
class Image {
 public:
  explicit Image(unsigned pointer_bytes) : bytes_{pointer_bytes} {}

  void put(std::uint64_t at, std::uint64_t value, unsigned size) {
    for (unsigned i = 0; i < size; ++i)
      memory_[at + i] = static_cast<std::uint8_t>(value >> (8 * i));
  }
  void word(std::uint64_t at, unsigned index, std::uint64_t value) {
    put(at + std::uint64_t{index} * bytes_, value, bytes_);
  }
  void text(std::uint64_t at, const std::string& value) {
    for (std::size_t i = 0; i <= value.size(); ++i)
      memory_[at + i] = static_cast<std::uint8_t>(value.c_str()[i]);
  }
  void header(unsigned index, std::uint32_t type, std::uint64_t address) {
    const std::uint64_t at = kBase + 0x40 + std::uint64_t{index} * header_bytes();
    for (unsigned i = 0; i < header_bytes(); ++i) memory_[at + i] = 0;
    put(at, type, 4);
    put(at + (bytes_ == 8 ? offsetof(Elf64_Phdr, p_vaddr) : offsetof(Elf32_Phdr, p_vaddr)), address,
        bytes_);
    headers_ = std::max(headers_, index + 1);
  }
  /// Adds a program with PT_PHDR and PT_DYNAMIC whose DT_DEBUG holds `debug`.
  void program(std::uint64_t debug) {
    header(0, PT_PHDR, 0x40);
    header(1, PT_LOAD, 0);
    header(2, PT_DYNAMIC, kDynamic - kBase);
    word(kDynamic, 0, DT_NEEDED);
    word(kDynamic, 1, 1);
    word(kDynamic, 2, DT_DEBUG);
    word(kDynamic, 3, debug);
    word(kDynamic, 4, DT_NULL);
    word(kDynamic, 5, 0);
  }
  void debug(std::uint64_t at, std::uint32_t version, std::uint64_t map, std::uint64_t next = 0) {
    for (unsigned i = 0; i < 6; ++i) word(at, i, 0);
    put(at, version, 4);
    word(at, 1, map);
    word(at, 5, next);
  }
  void object(std::uint64_t at, std::uint64_t bias, const std::string& name, std::uint64_t next) {
    word(at, 0, bias);
    word(at, 1, at + 0x80);
    word(at, 2, bias + 0x10);
    word(at, 3, next);
    word(at, 4, 0);
    text(at + 0x80, name);
  }
  [[nodiscard]] std::vector<std::uint8_t> auxv() const {
    std::vector<std::uint8_t> out;
    const auto add = [&](std::uint64_t value) {
      for (unsigned i = 0; i < bytes_; ++i)
        out.push_back(static_cast<std::uint8_t>(value >> 8 * i));
    };
    for (const std::uint64_t value :
         {std::uint64_t{AT_PHDR}, kBase + 0x40, std::uint64_t{AT_PHENT},
          std::uint64_t{header_bytes()}, std::uint64_t{AT_PHNUM}, std::uint64_t{headers_},
          std::uint64_t{AT_ENTRY}, kBase + 0x500, std::uint64_t{AT_NULL}, std::uint64_t{0}})
      add(value);
    return out;
  }
  [[nodiscard]] Result<LinkMapList> read() const {
    const MemoryReader reader = [this](TraceeAddr at, std::span<std::uint8_t> out) {
      std::size_t count = 0;
      for (; count < out.size(); ++count) {
        const auto found = memory_.find(at.value() + count);
        if (found == memory_.end()) break;
        out[count] = found->second;
      }
      return count;
    };
    return read_link_maps(reader, auxv(), bytes_);
  }
  std::map<std::uint64_t, std::uint8_t>& memory() { return memory_; }

 private:
  [[nodiscard]] unsigned header_bytes() const {
    return bytes_ == 8 ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr);
  }
  unsigned bytes_;
  unsigned headers_ = 0;
  std::map<std::uint64_t, std::uint8_t> memory_;
};

class LinkMaps : public testing::TestWithParam<unsigned> {
 protected:
  Image image_{GetParam()};
};

TEST_P(LinkMaps, ListsLibrariesApartFromTheProgram) {
  image_.program(kDebug);
  image_.debug(kDebug, 1, 0x8000);
  image_.object(0x8000, kBase, "", 0x8200);
  image_.object(0x8200, 0x20000, "", 0x8400);  // without a name: omitted
  image_.object(0x8400, 0x30000, "/lib/libc.so.6", 0);
  const auto list = image_.read();
  ASSERT_TRUE(list);
  EXPECT_EQ(list->main, 0x8000_ta);
  EXPECT_EQ(list->debug_pointer, TraceeAddr{kDynamic + 3 * GetParam()});
  ASSERT_EQ(list->entries.size(), 1U);
  EXPECT_EQ(list->entries[0], (LinkMapEntry{"/lib/libc.so.6", 0x8400_ta, 0x30000_ta, 0x30010_ta,
                                            TraceeAddr{kDebug}}));
}

TEST_P(LinkMaps, FollowsNamespaces) {
  image_.program(kDebug);
  image_.debug(kDebug, 2, 0x8000, 0x7100);
  image_.debug(0x7100, 2, 0x8400, 0);
  image_.object(0x8000, kBase, "", 0x8200);
  image_.object(0x8200, 0x20000, "/lib/a.so", 0);
  image_.object(0x8400, 0x30000, "/lib/b.so", 0);
  const auto list = image_.read();
  ASSERT_TRUE(list);
  ASSERT_EQ(list->entries.size(), 2U);
  EXPECT_EQ(list->entries[0].namespace_id, TraceeAddr{kDebug});
  EXPECT_EQ(list->entries[1].name, "/lib/b.so");
  EXPECT_EQ(list->entries[1].namespace_id, 0x7100_ta);
}

TEST_P(LinkMaps, IgnoresNextInVersionOne) {
  image_.program(kDebug);
  image_.debug(kDebug, 1, 0x8000, 0x7100);
  image_.debug(0x7100, 1, 0x8400);
  image_.object(0x8000, kBase, "", 0);
  image_.object(0x8400, 0x30000, "/lib/b.so", 0);
  EXPECT_TRUE(image_.read().value().entries.empty());
}

TEST_P(LinkMaps, IsEmptyBeforeTheLinkerRan) {
  image_.program(0);
  const auto early = image_.read();
  ASSERT_TRUE(early);
  EXPECT_FALSE(early->main);
  EXPECT_TRUE(early->entries.empty());

  image_.program(kDebug);
  image_.debug(kDebug, 0, 0);
  ASSERT_TRUE(image_.read());
  EXPECT_FALSE(image_.read()->main);
}

TEST_P(LinkMaps, IsAbsentFromStaticPrograms) {
  image_.header(0, PT_PHDR, 0x40);
  image_.header(1, PT_LOAD, 0);
  EXPECT_TRUE(image_.read().error().is(TraceErrc::kNotFound));
  image_.header(2, PT_DYNAMIC, kDynamic - kBase);
  image_.word(kDynamic, 0, DT_NULL);
  image_.word(kDynamic, 1, 0);
  EXPECT_TRUE(image_.read().error().is(TraceErrc::kNotFound));
}

TEST_P(LinkMaps, EndsOnCycles) {
  image_.program(kDebug);
  image_.debug(kDebug, 2, 0x8000, 0x7100);
  image_.debug(0x7100, 2, 0x8000, kDebug);
  image_.object(0x8000, kBase, "", 0x8200);
  image_.object(0x8200, 0x20000, "/lib/a.so", 0x8000);
  const auto list = image_.read();
  ASSERT_TRUE(list);
  EXPECT_EQ(list->entries.size(), 1U);
}

TEST_P(LinkMaps, SurvivesDamage) {
  std::mt19937 random{7};  // NOLINT(bugprone-random-generator-seed): the same damage each time
  for (int round = 0; round < 300; ++round) {
    Image image{GetParam()};
    image.program(kDebug);
    image.debug(kDebug, 2, 0x8000, 0x7100);
    image.debug(0x7100, 2, 0x8400, 0);
    image.object(0x8000, kBase, "", 0x8200);
    image.object(0x8200, 0x20000, "/lib/a.so", 0);
    image.object(0x8400, 0x30000, "/lib/b.so", 0);
    for (int hits = 0; hits < 8; ++hits) {
      auto it = image.memory().begin();
      std::advance(it, static_cast<std::ptrdiff_t>(random() % image.memory().size()));
      if (random() % 4 == 0)
        image.memory().erase(it);
      else
        it->second = static_cast<std::uint8_t>(random());
    }
    const auto list = image.read();
    if (list) {
      EXPECT_LE(list->entries.size(), 10U);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Widths, LinkMaps, testing::Values(4U, 8U),
                         [](const auto& width) { return std::to_string(width.param * 8) + "Bit"; });

TEST(Auxv, StopsAtACut) {
  const std::vector<std::uint8_t> cut(15, 3);
  EXPECT_EQ(parse_auxv(cut, 8).program_headers, TraceeAddr{});
  EXPECT_EQ(parse_auxv({}, 4).entry, TraceeAddr{});
}

}  // namespace
}  // namespace backtrail::tracee
