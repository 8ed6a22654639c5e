// SPDX-License-Identifier: Apache-2.0
// Translations loaded from an earlier process: the same trace, and no harm from any file.

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "decoder/trace/trace_consumer.hpp"
#include "engine_driver.hpp"
#include "ptrace/codecache/memory/spare_memory.hpp"
#include "ptrace/codecache/persist/persistent_store.hpp"
#include "ptrace/source/source_statistics.hpp"
#include "ptrace/trace/thread_trace.hpp"
#include "test/support/effort.hpp"
#include "test/support/own_affinity.hpp"
#include "test/support/temporary_folder.hpp"

namespace backtrail::tracee {
namespace {

namespace fs = std::filesystem;
using Store = std::shared_ptr<cache::PersistentStore>;
using Spare = std::shared_ptr<cache::SpareMemory>;

class KeptRecords : public decoder::TraceConsumer {
 public:
  void consume(std::span<const decoder::Record> records) override {
    all.insert(all.end(), records.begin(), records.end());
  }
  std::vector<decoder::Record> all;
};

struct CountedRun {
  StopEvent end;
  std::vector<decoder::Record> records;
  std::uint64_t misses = 0;
};

CountedRun run_with(const Store& store, const std::string& name,
                    const std::vector<std::string>& arguments = {}, bool random_addresses = false,
                    const Spare& spare = nullptr) {
  const test::OneCpu misses_by_stops;
  CountedRun outcome;
  KeptRecords collector;
  const auto sums = std::make_shared<SourceStatistics>();
  EngineDriver driver{SourceKind::kCache};
  driver.random_addresses = random_addresses;
  const pid_t pid = driver.launch(name, arguments);
  const ThreadId id{pid, pid};
  EXPECT_TRUE(driver.engine.enable_trace(id, {.format = TraceFormat::kBts,
                                              .size_bytes = 0,
                                              .statistics = sums,
                                              .kept = store,
                                              .spare = spare}));
  Thread* thread = driver.engine.find(id);
  if (thread == nullptr || !thread->trace()) return outcome;
  thread->trace()->hub().add(collector, *thread->pc());
  int signal = 0;
  for (;;) {
    driver.resume(id, ResumeAction{.signal = signal});
    const auto event = driver.await();
    if (!event) {
      ADD_FAILURE() << name << " does not end";
      return outcome;
    }
    outcome.end = *event;
    if (event->kind == StopKind::kProcessExited || event->kind == StopKind::kProcessSignalled)
      break;
    signal = event->kind == StopKind::kSignal ? event->signal : 0;
    thread->trace()->source().flush();
  }
  outcome.records = std::move(collector.all);
  outcome.misses = sums->misses;
  return outcome;
}

class Folder {
 public:
  [[nodiscard]] fs::path outer() const { return parent_.path(); }
  [[nodiscard]] fs::path inner() const { return parent_ / "kept"; }
  [[nodiscard]] std::vector<fs::path> files() const {
    std::vector<fs::path> found;
    for (const auto& each : fs::directory_iterator{inner()}) found.push_back(each.path());
    return found;
  }

 private:
  test::TemporaryFolder parent_;
};

void expect_same(const CountedRun& one, const CountedRun& other) {
  EXPECT_EQ(one.end.kind, other.end.kind);
  EXPECT_EQ(one.end.exit_code, other.end.exit_code);
  ASSERT_EQ(one.records.size(), other.records.size());
  for (std::size_t i = 0; i < one.records.size(); ++i) {
    ASSERT_EQ(one.records[i], other.records[i]) << "record " << i;
  }
}

void damage(const fs::path& file) {
  std::fstream stream{file, std::ios::in | std::ios::out | std::ios::binary};
  stream.seekp(static_cast<std::streamoff>(fs::file_size(file) / 2));
  stream.put('x').put('y').put('z');
}

/// Returns how many bits of addresses the kernel randomizes (proc_sys_vm(5)).
int vm_random_bits() {
  int bits = 0;
  std::ifstream{"/proc/sys/vm/mmap_rnd_bits"} >> bits;
  return bits;
}

class PersistentCodeOf : public testing::TestWithParam<const char*> {};

TEST_P(PersistentCodeOf, RunsTheSameWithFewerMisses) {
  const Folder folder;
  const CountedRun first =
      run_with(std::make_shared<cache::PersistentStore>(folder.inner()), GetParam());
  const CountedRun second =
      run_with(std::make_shared<cache::PersistentStore>(folder.inner()), GetParam());
  expect_same(first, second);
  EXPECT_LT(second.misses, first.misses);
}

INSTANTIATE_TEST_SUITE_P(Programs, PersistentCodeOf,
                         testing::Values("plain_static", "calls_static", "calls", "throws", "jumps",
                                         "loads"));

class PersistentCodeOfRandomAddresses : public testing::TestWithParam<const char*> {};

TEST_P(PersistentCodeOfRandomAddresses, RunsTheSameWithFewerMisses) {
  const Folder folder;
  const auto run = [&] {
    return run_with(std::make_shared<cache::PersistentStore>(folder.inner()), GetParam(), {}, true);
  };
  const CountedRun first = run();
  EXPECT_EQ(first.end.kind, StopKind::kProcessExited);
  // With 32 random bits, programs land in one of four places.
  const bool usual = vm_random_bits() == 28;
  for (int i = 0; i < 3; ++i) {
    const CountedRun again = run();
    EXPECT_EQ(again.end.exit_code, first.end.exit_code);
    // Stack and heap are elsewhere, so the program may take another path in the C library.
    EXPECT_NEAR(static_cast<double>(again.records.size()),
                static_cast<double>(first.records.size()),
                static_cast<double>(first.records.size()) / 20);
    if (!usual) continue;
    EXPECT_LT(again.misses, first.misses / 2);
  }
}

INSTANTIATE_TEST_SUITE_P(Programs, PersistentCodeOfRandomAddresses,
                         testing::Values("plain_static", "calls", "throws", "jumps", "loads"));

TEST(RandomAddresses, AreFixedWithoutALie) {
  const Folder folder;
  for (const char* how : {"", "again", "limited", "limits", "vfork"}) {
    for (int i = 0; i < 2; ++i) {
      std::vector<std::string> arguments;
      if (*how != '\0') arguments.emplace_back(how);
      const CountedRun outcome = run_with(std::make_shared<cache::PersistentStore>(folder.inner()),
                                          "places", arguments, true);
      EXPECT_EQ(outcome.end.kind, StopKind::kProcessExited) << how;
      EXPECT_EQ(outcome.end.exit_code, 0) << how;
    }
  }
}

TEST(PersistentCode, MayBeMadeBetterAndKeptAgain) {
  const Folder folder;
  const auto run = [&] {
    return run_with(std::make_shared<cache::PersistentStore>(folder.inner()), "habits");
  };
  const CountedRun first = run();
  ASSERT_GT(first.records.size(), 1'000'000U);
  for (int i = 0; i < (test::kSanitized ? 1 : 3); ++i) expect_same(first, run());
}

/// Each process but the first finds its code where the one before left it.
class CodeLeftBy : public testing::TestWithParam<const char*> {};

TEST_P(CodeLeftBy, IsThatOfTheNextProcess) {
  const Folder folder;
  const auto store = std::make_shared<cache::PersistentStore>(folder.inner());
  const auto spare = std::make_shared<cache::SpareMemory>(cache::SpareMemory::kMostBytes);
  const std::string program = fs::canonical(fs::path{BT_INFERIOR_DIR} / GetParam());
  const auto run = [&] { return run_with(store, GetParam(), {}, false, spare); };
  const CountedRun first = run();
  for (int i = 0; i < 4; ++i) {
    auto memory = spare->take(program);
    if (!memory) GTEST_SKIP() << "no leases on memory files: fcntl(2), F_SETLEASE";
    const auto& left = memory->left_code;
    ASSERT_FALSE(left.code.empty());
    // All changes since are known.
    std::uint8_t* code = memory->host() + cache::kTableBytes;
    for (const std::uint32_t at : left.changed) {
      const auto saved = left.code.subspan(at, cache::LeftCode::kChangedBytes);
      std::copy(saved.begin(), saved.end(), code + at);
    }
    EXPECT_TRUE(std::equal(left.code.begin(), left.code.end(), code));
    spare->give(std::move(memory), program);
    const CountedRun next = run();
    expect_same(first, next);
    EXPECT_LT(next.misses, first.misses);
  }
}

INSTANTIATE_TEST_SUITE_P(Programs, CodeLeftBy,
                         testing::Values("plain_static", "calls", "throws", "jumps", "loads",
                                         "habits"));

TEST(PersistentCode, OfAProgramThatFiltersItsCallsIsForProgramsThatDoNotYet) {
  const Folder folder;
  const auto run = [&] {
    return run_with(std::make_shared<cache::PersistentStore>(folder.inner()), "filters", {"alone"});
  };
  const CountedRun first = run();
  EXPECT_EQ(first.end.exit_code, 0);
  for (int i = 0; i < 2; ++i) {
    const CountedRun again = run();
    expect_same(first, again);
    EXPECT_LT(again.misses, first.misses);
  }
}

TEST(PersistentCode, OfAFileInPiecesLeadsFromOneToTheOther) {
  constexpr std::uint64_t kBranches = 64;
  const Folder folder;
  const auto run = [&] {
    return run_with(std::make_shared<cache::PersistentStore>(folder.inner()), "pieces");
  };
  const CountedRun first = run();
  EXPECT_EQ(first.end.exit_code, 0);
  EXPECT_GT(first.misses, kBranches);
  for (int i = 0; i < 2; ++i) {
    const CountedRun again = run();
    expect_same(first, again);
    EXPECT_LT(again.misses, kBranches / 2);
  }
}

/// Checks the calls of functions of `targets`, in the order in which its first thread makes them.
void expect_every_target(const CountedRun& outcome) {
  constexpr std::uint64_t kPlace = 0x6200'0000'0000;
  constexpr std::uint64_t kFunctions = 32768;
  constexpr std::uint64_t kStride = 12345;
  EXPECT_EQ(outcome.end.exit_code, 0);
  std::uint64_t calls = 0;
  for (const decoder::Record& record : outcome.records) {
    if (record.to.value() < kPlace || record.to.value() >= kPlace + 16 * kFunctions) continue;
    ASSERT_EQ(record.to.value(), kPlace + calls % kFunctions * kStride % kFunctions * 16) << calls;
    ++calls;
  }
  EXPECT_EQ(calls, 2 * kFunctions);
}

TEST(PersistentCode, MoreTargetsThanASmallTableHasEntries) {
  const Folder folder;
  for (int i = 0; i < (test::kSanitized ? 2 : 3); ++i) {
    SCOPED_TRACE(i);
    expect_every_target(
        run_with(std::make_shared<cache::PersistentStore>(folder.inner()), "targets"));
  }
}

/// Runs `modules` with copies of libraries, one run after the other.
class PersistentModulesOf : public testing::Test {
 protected:
  /// Returns the path of a copy, a new file each time.
  std::string put(const std::string& library, const std::string& name) {
    const fs::path target = folder_.outer() / name;
    const fs::path made = target.string() + ".new";
    fs::copy_file(fs::path{BT_INFERIOR_DIR} / library, made);
    fs::rename(made, target);
    return target.string();
  }
  CountedRun run(const std::vector<std::string>& arguments) {
    CountedRun outcome =
        run_with(std::make_shared<cache::PersistentStore>(folder_.inner()), "modules", arguments);
    EXPECT_EQ(outcome.end.kind, StopKind::kProcessExited);
    return outcome;
  }
  static constexpr int kOne = 0x11;
  static constexpr int kTwo = 0x22;

 private:
  Folder folder_;
};

TEST_F(PersistentModulesOf, CodeThatWasFollowedIntoAnotherModuleIsLookedAtAgain) {
  const std::string calls = put("libmodule_calls.so", "libcalls.so");
  const std::string module = put("libmodule_one.so", "libmodule.so");
  for (int i = 0; i < 2; ++i) EXPECT_EQ(run({"call", calls, module}).end.exit_code, kOne);
  put("libmodule_two.so", "libmodule.so");
  for (int i = 0; i < 2; ++i) EXPECT_EQ(run({"call", calls, module}).end.exit_code, kTwo);
}

TEST_F(PersistentModulesOf, WhatAProgramChangesIsNotTakenForItsFile) {
  const std::string module = put("libmodule_one.so", "libmodule.so");
  for (const int value : {3, 4, 5}) {
    EXPECT_EQ(run({"patch", module, std::to_string(value)}).end.exit_code, value);
  }
  EXPECT_EQ(run({"reload", "1", module}).end.exit_code, kOne);
  EXPECT_EQ(run({"patch", module, "6"}).end.exit_code, 6);
}

TEST_F(PersistentModulesOf, ModulesThatComeAndGoAreKept) {
  const std::string module = put("libmodule_one.so", "libmodule.so");
  const CountedRun once = run({"reload", "1", module});
  const CountedRun first = run({"reload", "20", module});
  const CountedRun second = run({"reload", "20", module});
  EXPECT_EQ(once.end.exit_code, kOne);
  expect_same(first, second);
  EXPECT_LT(second.misses, once.misses / 2);
}

TEST_F(PersistentModulesOf, ACopyOfAFileIsTheSameModule) {
  const std::string module = put("libmodule_one.so", "libmodule.so");
  (void)run({"reload", "1", module});
  const CountedRun with_file = run({"reload", "1", module});
  put("libmodule_one.so", "libmodule.so");
  const CountedRun with_copy = run({"reload", "1", module});
  expect_same(with_file, with_copy);
  EXPECT_EQ(with_copy.misses, with_file.misses);
}

TEST_F(PersistentModulesOf, AModuleInTheSamePlaceAsAnotherIsNotTakenForIt) {
  const std::string one = put("libmodule_one.so", "libone.so");
  const std::string two = put("libmodule_two.so", "libtwo.so");
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(run({"reload", "3", one, two}).end.exit_code, kTwo);
    EXPECT_EQ(run({"reload", "3", two, one}).end.exit_code, kOne);
    EXPECT_EQ(run({"reload", "1", one, one}).end.exit_code, kOne);
  }
}

TEST_F(PersistentModulesOf, AFileThatIsGoneLeavesNothingToTheOneThatWasThereBefore) {
  const auto run_one = [&] {
    return run({"reload", "1", put("libmodule_one.so", "libmodule.so")}).end.exit_code;
  };
  EXPECT_EQ(run_one(), kOne);
  // Often enough that what each of them makes is saved.
  for (int i = 0; i < 20; ++i) {
    const std::string module = put("libmodule_two.so", "libmodule.so");
    EXPECT_EQ(run({"remove", "1", module}).end.exit_code, kTwo);
    EXPECT_EQ(run_one(), kOne);
  }
}

/// Two programs that load the same libraries and have their own code at the same addresses.
class KeptForItsKind : public testing::Test {
 protected:
  CountedRun run(const std::string& name) {
    return run_with(std::make_shared<cache::PersistentStore>(folder_.inner()), name);
  }
  void forget_all() { fs::remove_all(folder_.inner()); }
  [[nodiscard]] std::vector<fs::path> files() const { return folder_.files(); }

 private:
  Folder folder_;
};

TEST_F(KeptForItsKind, ANewProgramTakesWhatAnotherOneLeftOfItsLibraries) {
  const CountedRun calls = run("calls");
  forget_all();
  const CountedRun alone = run("jumps");
  forget_all();
  expect_same(calls, run("calls"));
  const CountedRun second = run("jumps");
  expect_same(alone, second);
  EXPECT_LT(second.misses, alone.misses * 3 / 4);
  // From now on each program has its own file.
  for (const char* name : {"jumps", "calls"}) {
    const CountedRun again = run(name);
    expect_same(again, std::string{name} == "jumps" ? alone : calls);
    EXPECT_LT(again.misses, second.misses);
  }
}

TEST_F(KeptForItsKind, IsOfUseToWhoLoadsOthersThroughTheSameLinkerToo) {
  const CountedRun alone = run("throws");
  forget_all();
  (void)run("calls");
  const CountedRun second = run("throws");
  expect_same(alone, second);
  EXPECT_LT(second.misses, alone.misses);
}

TEST_F(KeptForItsKind, DamagedNotesDoNoHarm) {
  const CountedRun alone = run("jumps");
  for (const std::string_view what : {"", "x", "\n\n\n", "* \n1\nnobody\n"}) {
    forget_all();
    (void)run("calls");
    for (const auto& file : files()) {
      if (file.extension() == ".like") std::ofstream{file, std::ios::trunc} << what;
    }
    const CountedRun second = run("jumps");
    expect_same(alone, second);
    EXPECT_EQ(second.misses, alone.misses);
  }
}

TEST_F(KeptForItsKind, ServesAgainOnceWhoServedIsGone) {
  const CountedRun alone = run("jumps");
  forget_all();
  (void)run("calls");
  for (const auto& file : files()) {
    if (file.extension() == ".code") fs::remove(file);
  }
  EXPECT_EQ(run("jumps").misses, alone.misses);
  // The run above has saved a file that serves.
  EXPECT_LT(run("calls").misses, alone.misses);
}

TEST(PersistentCode, DamagedFilesAreOfNoUseAndDoNoHarm) {
  const Folder folder;
  const auto run = [&] {
    return run_with(std::make_shared<cache::PersistentStore>(folder.inner()), "calls");
  };
  const CountedRun first = run();
  for (const auto& file : folder.files()) damage(file);
  const CountedRun damaged = run();
  expect_same(first, damaged);
  EXPECT_EQ(damaged.misses, first.misses);
  for (const auto& file : folder.files()) fs::resize_file(file, fs::file_size(file) / 3);
  expect_same(first, run());
  fs::remove_all(folder.inner());
  expect_same(first, run());
}

TEST(PersistentCode, FilesThatWereFoundGoodAreCheckedAgainOnceTheyHaveChanged) {
  const Folder folder;
  const auto run = [&] {
    return run_with(std::make_shared<cache::PersistentStore>(folder.inner()), "calls");
  };
  const auto code_and_note = [&] {
    const auto files = folder.files();
    return std::any_of(files.begin(), files.end(),
                       [](const fs::path& file) { return file.extension() == ".checked"; });
  };
  const CountedRun first = run();
  // The note is not written at once, because a change right after validation would not show.
  for (int tries = 0; tries < 1000 && !code_and_note(); ++tries) (void)run();
  ASSERT_TRUE(code_and_note());
  const CountedRun good = run();
  expect_same(first, good);
  EXPECT_LT(good.misses, first.misses);
  for (const auto& file : folder.files()) {
    if (file.extension() == ".code") damage(file);
  }
  const CountedRun damaged = run();
  expect_same(first, damaged);
  EXPECT_EQ(damaged.misses, first.misses);
}

TEST(PersistentCode, AFolderOthersMayWriteToIsNotUsed) {
  const Folder folder;
  fs::create_directory(folder.inner());
  fs::permissions(folder.inner(), fs::perms::all);
  const auto store = [&] { return std::make_shared<cache::PersistentStore>(folder.inner()); };
  const CountedRun first = run_with(store(), "plain_static");
  EXPECT_TRUE(folder.files().empty());
  EXPECT_EQ(run_with(store(), "plain_static").misses, first.misses);
}

}  // namespace
}  // namespace backtrail::tracee
