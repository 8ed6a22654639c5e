// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/program/executable_map.hpp"

#include <gtest/gtest.h>

namespace backtrail::tracee::cache {
namespace {

MapEntry code_at(std::uint64_t start, std::uint64_t end, const std::string& path) {
  MapEntry map;
  map.start = start;
  map.end = end;
  map.read = true;
  map.execute = true;
  map.inode = start;
  map.path = path;
  return map;
}

TEST(ExecutableMap, FindsTheRangeOfAnAddressWhateverItFoundBefore) {
  const std::vector<MapEntry> maps{code_at(0x1000, 0x3000, "/a"), code_at(0x3000, 0x4000, "/b"),
                                   code_at(0x8000, 0x9000, "/c")};
  const auto never = [](const MapEntry&) { return false; };
  const auto map = ExecutableMap::from(maps, TraceeAddr{}, ProtectedPages{}, never);
  const auto path_at = [&](std::uint64_t at) {
    const auto* range = map.find(TraceeAddr{at});
    return range != nullptr ? range->path : "";
  };
  for (int again = 0; again < 2; ++again) {
    EXPECT_EQ(path_at(0x1000), "/a");
    EXPECT_EQ(path_at(0x2fff), "/a");
    EXPECT_EQ(path_at(0x3000), "/b");
    EXPECT_EQ(path_at(0x4000), "");
    EXPECT_EQ(path_at(0x8fff), "/c");
    EXPECT_EQ(path_at(0x9000), "");
    EXPECT_EQ(path_at(0xfff), "");
    EXPECT_EQ(path_at(0x8000), "/c");
  }
}

}  // namespace
}  // namespace backtrail::tracee::cache
