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

MapEntry data_of(MapEntry map, std::uint64_t start, std::uint64_t end, bool write) {
  map.start = start;
  map.end = end;
  map.execute = false;
  map.write = write;
  return map;
}

TEST(ExecutableMap, ReadOnlyMemoryOfTheSameFileIsConstant) {
  const MapEntry code = code_at(0x2000, 0x3000, "/a");
  const std::vector<MapEntry> maps{data_of(code, 0x1000, 0x2000, false), code,
                                   data_of(code, 0x3000, 0x4000, false),
                                   data_of(code, 0x4000, 0x5000, true),
                                   data_of(code_at(0x5000, 0, "/b"), 0x5000, 0x6000, false)};
  using Parts = std::vector<ExecutableMap::Part>;
  const Parts all{{TraceeAddr{0x1000}, TraceeAddr{0x4000}}};
  const auto never = [](const MapEntry&) { return false; };
  const auto map = ExecutableMap::from(maps, TraceeAddr{}, ProtectedPages{}, never);
  EXPECT_EQ(map.everything(), all);
  EXPECT_EQ(map.constant(), all);
  // Somebody has the file open for writing.
  const auto always = [](const MapEntry&) { return true; };
  const auto changing = ExecutableMap::from(maps, TraceeAddr{}, ProtectedPages{}, always);
  EXPECT_EQ(changing.everything(), all);
  EXPECT_TRUE(changing.constant().empty());
}

TEST(ExecutableMap, DataMayYetBeMappedAfterCodeOfANewFile) {
  const MapEntry code = code_at(0x2000, 0x3000, "/a");
  const MapEntry before = data_of(code, 0x1000, 0x2000, false);
  const MapEntry after = data_of(code, 0x3000, 0x5000, false);
  const auto never = [](const MapEntry&) { return false; };
  const auto read = [&](const std::vector<MapEntry>& maps, const ExecutableMap* older) {
    return ExecutableMap::from(maps, TraceeAddr{}, ProtectedPages{}, never, older);
  };
  using Parts = std::vector<ExecutableMap::Part>;
  const Parts begun{{TraceeAddr{0x1000}, TraceeAddr{0x3000}}};
  const Parts tail{{TraceeAddr{0x3000}, TraceeAddr{0x5000}}};
  const Parts whole{{TraceeAddr{0x1000}, TraceeAddr{0x5000}}};
  const auto first = read({before, code, after}, nullptr);
  EXPECT_EQ(first.everything(), begun);
  EXPECT_EQ(first.constant(), begun);
  EXPECT_EQ(first.growing(), tail);
  // A file without data.
  const auto second = read({before, code, after}, &first);
  EXPECT_EQ(second.everything(), whole);
  EXPECT_EQ(second.constant(), whole);
  EXPECT_TRUE(second.growing().empty());
  EXPECT_TRUE(read({before, code, after}, &second).growing().empty());
  // A file with data.
  const std::vector<MapEntry> complete{before, code, data_of(code, 0x3000, 0x4000, false),
                                       data_of(code, 0x4000, 0x5000, true)};
  const auto other = read(complete, &first);
  EXPECT_EQ(other.constant(), (Parts{{TraceeAddr{0x1000}, TraceeAddr{0x4000}}}));
  EXPECT_TRUE(other.growing().empty());
}

TEST(ExecutableMap, CodeThatCanBeWrittenOrIsInNoFileIsNotConstant) {
  MapEntry patched = code_at(0x2000, 0x3000, "/a");
  patched.write = true;
  MapEntry made = code_at(0x8000, 0x9000, "");
  made.inode = 0;
  MapEntry vdso = made;
  vdso.start = 0xa000;
  vdso.end = 0xb000;
  vdso.path = kVdso;
  MapEntry rest = code_at(0x3000, 0x4000, "/a");
  rest.inode = patched.inode;
  const std::vector<MapEntry> maps{patched, rest, made, vdso};
  const auto never = [](const MapEntry&) { return false; };
  const auto map = ExecutableMap::from(maps, TraceeAddr{}, ProtectedPages{}, never);
  const std::vector<ExecutableMap::Part> constant{{TraceeAddr{0x3000}, TraceeAddr{0x4000}},
                                                  {TraceeAddr{0xa000}, TraceeAddr{0xb000}}};
  EXPECT_EQ(map.constant(), constant);
}

}  // namespace
}  // namespace backtrail::tracee::cache
