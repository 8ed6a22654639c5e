// SPDX-License-Identifier: Apache-2.0
// Tests with the dynamic linker of this machine, without its debug file.
#include <string>
#include <vector>

#include <fcntl.h>
#include <gelf.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "decoder/symbols/elf_functions.hpp"

namespace backtrail::decoder {
namespace {

using testing::Each;
using testing::Field;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

class LazyResolvers : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (::access(GetParam(), R_OK) != 0) GTEST_SKIP() << "no " << GetParam();
    elf_version(EV_CURRENT);
    fd_ = ::open(GetParam(), O_RDONLY | O_CLOEXEC);
    elf_ = elf_begin(fd_, ELF_C_READ_MMAP, nullptr);
    ASSERT_NE(elf_, nullptr);
  }
  void TearDown() override {
    elf_end(elf_);
    if (fd_ >= 0) ::close(fd_);
  }

  [[nodiscard]] std::vector<CodeSymbol> find(const std::vector<CodeSymbol>& symbols,
                                             std::uint64_t bias = 0) const {
    return lazy_resolvers(elf_, bias, symbols, unwind_starts(elf_, bias));
  }

  int fd_ = -1;
  Elf* elf_ = nullptr;
};

/// Returns a symbol that only dynamic linkers have.
CodeSymbol of_linkers() {
  return {.start = 1, .name = "__tls_get_addr"};
}

TEST_P(LazyResolvers, AreKnownByTheirShape) {
  const auto found = find({of_linkers()});
  ASSERT_THAT(found, Not(IsEmpty()));
  EXPECT_THAT(found, Each(Field(&CodeSymbol::stub, true)));
  EXPECT_EQ(found[0].name, "_dl_runtime_resolve");
  const auto moved = find({of_linkers()}, 0x1000);
  ASSERT_THAT(moved, SizeIs(found.size()));
  EXPECT_EQ(moved[0].start, found[0].start + 0x1000);
}

TEST_P(LazyResolvers, AreLeftToSymbolsWhereThereAreSome) {
  const auto found = find({of_linkers()});
  ASSERT_THAT(found, Not(IsEmpty()));
  EXPECT_THAT(find({of_linkers(), found[0]}), SizeIs(found.size() - 1));
}

TEST_P(LazyResolvers, AreLookedForInLinkersOnly) {
  EXPECT_THAT(find({}), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Linkers, LazyResolvers,
                         testing::Values("/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux.so.2"));

}  // namespace
}  // namespace backtrail::decoder
