// SPDX-License-Identifier: Apache-2.0
// Writes cores of crashed programs and reads them back.
#include <csignal>
#include <filesystem>

#include <sys/resource.h>
#include <sys/stat.h>

#include <gmock/gmock.h>

#include "core_fixture.hpp"
#include "decoder/corefile/core_file.hpp"
#include "decoder/corefile/trace_archive.hpp"

namespace backtrail::tracee {
namespace {

using decoder::CoreFile;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::Gt;
using ::testing::IsEmpty;
using ::testing::Lt;
using ::testing::SizeIs;

std::uint64_t disk_bytes(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 ? static_cast<std::uint64_t>(status.st_blocks) * 512
                                            : 0;
}

/// Returns the names in a folder.
std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator{folder}) {
    out.push_back(entry.path().filename().string());
  }
  return out;
}

TEST(CoreWriter, HoldsWhatTheProcessWas) {
  const TemporaryFolder folder;
  Crash crash{"crashes", {"null"}};
  crash.cause.about = {{"reason", "signal"}, {"odd", "a\nb%c"}};
  ASSERT_TRUE(crash.write(folder / "core"));
  const auto bytes = bytes_of(folder / "core");
  const auto core = CoreFile::parse(bytes);
  ASSERT_TRUE(core) << core.error().message();
  EXPECT_FALSE(core->truncated());
  ASSERT_THAT(core->threads(), SizeIs(1));
  const auto& thread = core->threads().front();
  Thread& live = *crash.process().threads().front();
  EXPECT_EQ(thread.tid, static_cast<std::uint32_t>(live.tid()));
  EXPECT_EQ(thread.signal, SIGSEGV);
  EXPECT_EQ(thread.user, *live.user_regs());
  ASSERT_TRUE(thread.siginfo);
  EXPECT_EQ(core->process().name, "crashes");
  EXPECT_THAT(core->process().arguments, EndsWith("crashes null"));
  EXPECT_EQ(core->auxv(), *ProcFs{}.auxv(live.tid()));
  EXPECT_EQ(core->about(), crash.cause.about);

  std::array<std::uint8_t, 64> here{};
  std::array<std::uint8_t, 64> there{};
  const TraceeAddr sp = thread.user.sp();
  ASSERT_EQ(core->read(sp, there), there.size());
  ASSERT_EQ(crash.process().read_memory(sp, here), here.size());
  EXPECT_EQ(here, there);
}

TEST(CoreWriter, LeavesCodeInItsFileAndSaysWhere) {
  const TemporaryFolder folder;
  Crash crash{"crashes", {"null"}};
  ASSERT_TRUE(crash.write(folder / "core"));
  ASSERT_TRUE(crash.write(folder / "full", {.full = true}));
  const auto bytes = bytes_of(folder / "core");
  const auto core = CoreFile::parse(bytes);
  const TraceeAddr pc = core->threads().front().user.pc();
  std::array<std::uint8_t, 4> code{};
  EXPECT_EQ(core->read(pc, code), 0U);
  const decoder::CoreMapping* mapping = core->mapping_at(pc);
  ASSERT_NE(mapping, nullptr);
  EXPECT_THAT(mapping->path, EndsWith("/crashes"));
  const auto full_bytes = bytes_of(folder / "full");
  EXPECT_EQ(CoreFile::parse(full_bytes)->read(pc, code), code.size());
}

TEST(CoreWriter, TheThreadThatDiedIsFirst) {
  const TemporaryFolder folder;
  Crash crash{"crashes", {"threads", "16"}};
  ASSERT_TRUE(crash.write(folder / "core"));
  const auto bytes = bytes_of(folder / "core");
  const auto core = CoreFile::parse(bytes);
  ASSERT_THAT(core->threads(), SizeIs(17));
  EXPECT_EQ(core->threads().front().tid, static_cast<std::uint32_t>(crash.cause.tid));
  for (const auto& thread : core->threads()) EXPECT_EQ(thread.signal, SIGSEGV);
}

TEST(CoreWriter, SparseMemoryCostsWhatWasTouched) {
  const TemporaryFolder folder;
  Crash crash{"crashes", {"sparse"}};
  const auto written = crash.write(folder / "core");
  ASSERT_TRUE(written);
  EXPECT_THAT(written->file_bytes, Gt(4ULL << 30U));
  EXPECT_LT(disk_bytes(folder / "core"), 1ULL << 20U);
}

TEST(CoreWriter, HoldsTheTraces) {
  const TemporaryFolder folder;
  Crash crash{"crashes", {"null"}};
  std::vector<decoder::Record> records{
      decoder::gap(decoder::GapReason::kStart, TraceeAddr{}, TraceeAddr{0x1000})};
  for (std::uint64_t i = 0; i < 100'000; ++i) {
    records.push_back(decoder::branch(TraceeAddr{0x1000 + i % 7}, TraceeAddr{0x1000}));
  }
  crash.traces = {core_trace(crash.pid, records)};
  ASSERT_TRUE(crash.write(folder / "core"));
  const auto bytes = bytes_of(folder / "core");
  const auto core = CoreFile::parse(bytes);
  const decoder::TraceArchive archive{*core};
  EXPECT_EQ(archive.unreadable_bytes(), 0U);
  EXPECT_EQ(archive.load(static_cast<std::uint32_t>(crash.pid)), records);
}

TEST(CoreWriter, AFullDiskKeepsTheTraceAndTheStack) {
  const TemporaryFolder folder;
  Crash crash{"crashes", {"full", "16"}};
  const std::vector<decoder::Record> records{
      decoder::gap(decoder::GapReason::kStart, TraceeAddr{}, TraceeAddr{0x1000})};
  crash.traces = {core_trace(crash.pid, records)};
  const auto written = crash.write(folder / "core", {.max_bytes = 1 << 20});
  ASSERT_TRUE(written) << written.error().message();
  EXPECT_THAT(written->missing_bytes, Gt(15U << 20U));
  EXPECT_LE(disk_bytes(folder / "core"), (1U << 20U) + 65536U);
  const auto bytes = bytes_of(folder / "core");
  const auto core = CoreFile::parse(bytes);
  ASSERT_TRUE(core);
  EXPECT_FALSE(core->truncated());
  std::array<std::uint8_t, 64> stack{};
  EXPECT_EQ(core->read(core->threads().front().user.sp(), stack), stack.size());
  EXPECT_EQ(decoder::TraceArchive{*core}.load(static_cast<std::uint32_t>(crash.pid)), records);
}

TEST(CoreWriter, WhatFitsOfALargeMappingIsKept) {
  const TemporaryFolder folder;
  Crash crash{"crashes", {"full", "16"}};
  const auto written = crash.write(folder / "core", {.max_bytes = 10 << 20});
  ASSERT_TRUE(written) << written.error().message();
  EXPECT_THAT(written->missing_bytes, AllOf(Gt(5U << 20U), Lt(9U << 20U)));
  const auto bytes = bytes_of(folder / "core");
  const auto core = CoreFile::parse(bytes);
  ASSERT_TRUE(core);
  EXPECT_FALSE(core->truncated());
  std::uint64_t held = 0;
  for (const decoder::CoreSegment& segment : core->segments()) held += segment.bytes.size();
  EXPECT_THAT(held, AllOf(Gt(8U << 20U), Lt(11U << 20U)));
}

TEST(CoreWriter, NothingIsLeftWhereNothingCanBeSaved) {
  const TemporaryFolder folder;
  Crash crash{"crashes", {"null"}};
  EXPECT_FALSE(crash.write(folder / "core", {.max_bytes = 100}));
  EXPECT_FALSE(crash.write(folder / "no/such/folder"));
  EXPECT_THAT(names_in(folder.path()), IsEmpty());
}

TEST(CoreWriter, ReplacesALinkAndNotWhatItLeadsTo) {
  const TemporaryFolder folder;
  Crash crash{"crashes", {"null"}};
  std::filesystem::create_symlink("/etc/hostname", folder / "core");
  ASSERT_TRUE(crash.write(folder / "core"));
  EXPECT_FALSE(std::filesystem::is_symlink(folder / "core"));
  EXPECT_THAT(names_in(folder.path()), SizeIs(1));
}

TEST(CoreWriter, WritesTheNarrowForm) {
  if (!std::filesystem::exists(std::string{BT_INFERIOR_DIR} + "/crashes32")) {
    GTEST_SKIP() << "no 32-bit programs here";
  }
  const TemporaryFolder folder;
  Crash crash{"crashes32", {"null"}};
  ASSERT_TRUE(crash.write(folder / "core"));
  const auto bytes = bytes_of(folder / "core");
  const auto core = CoreFile::parse(bytes);
  ASSERT_TRUE(core) << core.error().message();
  EXPECT_EQ(core->isa(), arch::Isa::kI386);
  EXPECT_EQ(core->threads().front().user.pc(), *crash.process().threads().front()->pc());
}

}  // namespace
}  // namespace backtrail::tracee
