// SPDX-License-Identifier: Apache-2.0
// Tests Go's function table with tables made here.
#include "decoder/symbols/go_functions.hpp"

#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "arch/base/bytes.hpp"

namespace backtrail::decoder {
namespace {

class GoTable {
 public:
  explicit GoTable(std::uint32_t magic, std::uint64_t text) : old_{magic == 0xfffffffa} {
    put<std::uint32_t>(magic);
    put<std::uint32_t>(0x08010000);  // Two zeros, the unit of code addresses, the size of pointers.
    const std::uint64_t header_words = old_ ? 7 : 8;
    const std::uint64_t names = 8 + header_words * 8;
    const std::string text_of_names{"main.main\0main.last\0", 20};
    const std::uint64_t functions = names + 24;
    const std::uint64_t facts = 5 * field();
    put<std::uint64_t>(2);  // Functions.
    put<std::uint64_t>(0);  // Files.
    if (!old_) put<std::uint64_t>(text);
    put<std::uint64_t>(names);
    for (int i = 0; i < 3; ++i) put<std::uint64_t>(0);  // Tables that are not read.
    put<std::uint64_t>(functions);
    bytes.insert(bytes.end(), text_of_names.begin(), text_of_names.end());
    bytes.resize(functions);
    const std::uint64_t base = old_ ? 0x401000 : 0;
    put_field(base + 0x20), put_field(facts);
    put_field(base + 0x60), put_field(facts + field() + 4);
    put_field(base + 0x90);
    put_field(base + 0x20), put<std::uint32_t>(0);
    put_field(base + 0x60), put<std::uint32_t>(10);
  }
  std::vector<std::uint8_t> bytes;

 private:
  [[nodiscard]] std::uint64_t field() const { return old_ ? 8 : 4; }
  template <typename T>
  void put(T value) {
    bytes.resize(bytes.size() + sizeof value);
    store_le(bytes.data() + bytes.size() - sizeof value, value);
  }
  void put_field(std::uint64_t value) {
    if (old_) {
      put(value);
    } else {
      put(static_cast<std::uint32_t>(value));
    }
  }
  bool old_;
};

void expect_both(const std::vector<CodeSymbol>& found) {
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].name, "main.main");
  EXPECT_EQ(found[0].start, 0x401020U);
  EXPECT_EQ(found[0].size, 0x40U);
  EXPECT_EQ(found[1].name, "main.last");
  EXPECT_EQ(found[1].start, 0x401060U);
  EXPECT_EQ(found[1].size, 0x30U);
}

TEST(GoFunctions, AreReadOfEveryVersion) {
  for (const std::uint32_t magic : {0xfffffffaU, 0xfffffff0U, 0xfffffff1U}) {
    expect_both(go_functions(GoTable{magic, 0x401000}.bytes, 0));
  }
}

TEST(GoFunctions, CountFromTheTextWhereTheTableDoesNotTell) {
  expect_both(go_functions(GoTable{0xfffffff1U, 0}.bytes, 0x401000));
}

TEST(GoFunctions, OtherTablesHaveNone) {
  EXPECT_TRUE(go_functions(GoTable{0xfffffffbU, 0x401000}.bytes, 0).empty());
  EXPECT_TRUE(go_functions({}, 0).empty());
}

TEST(GoFunctions, DamagedTablesEndEarly) {
  for (const std::uint32_t magic : {0xfffffffaU, 0xfffffff1U}) {
    const std::vector<std::uint8_t> whole = GoTable{magic, 0x401000}.bytes;
    for (std::size_t size = 0; size < whole.size(); ++size) {
      const std::vector<std::uint8_t> cut(whole.begin(),
                                          whole.begin() + static_cast<std::ptrdiff_t>(size));
      EXPECT_LE(go_functions(cut, 0).size(), 2U);
    }
    for (std::size_t at = 0; at < whole.size(); ++at) {
      std::vector<std::uint8_t> damaged = whole;
      damaged[at] ^= 0xffU;
      EXPECT_LE(go_functions(damaged, 0).size(), 2U) << at;
    }
  }
}

}  // namespace
}  // namespace backtrail::decoder
