// SPDX-License-Identifier: Apache-2.0
// Crash files of hardware traces: a simulated kernel supplies the records that stepping found.
#include <algorithm>
#include <filesystem>
#include <set>

#include "core_fixture.hpp"
#include "decoder/corefile/core_file.hpp"
#include "decoder/corefile/trace_archive.hpp"
#include "decoder/pt/pt_encoder.hpp"
#include "server/record/crash_file.hpp"
#include "test/support/simulated_perf.hpp"

namespace backtrail::server {
namespace {

using decoder::Record;
using decoder::RecordKind;
using decoder::perf::RecordType;
using tracee::SourceKind;

tracee::LaunchSpec crashing(const std::string& how) {
  tracee::LaunchSpec spec;
  // One test steps all of it: there are few instructions before main().
  spec.program = std::string{BT_INFERIOR_DIR} + "/crashes_static";
  spec.environment = {"LC_ALL=C"};
  spec.arguments = {how};
  spec.through_shell = false;
  spec.disable_randomization = true;
  return spec;
}

RecorderOptions by(SourceKind source, tracee::PerfKernel* kernel) {
  RecorderOptions options;
  options.source = source;
  options.perf = kernel;
  return options;
}

std::vector<Record> branches_of(const std::vector<Record>& records) {
  std::vector<Record> out;
  std::copy_if(records.begin(), records.end(), std::back_inserter(out),
               [](const Record& record) { return record.kind == RecordKind::kBranch; });
  return out;
}

/// Keeps a program's records when it is about to die, and encodes them as Intel PT.
class Oracle final : public RecordObserver {
 public:
  [[nodiscard]] bool wants(pid_t /*pid*/, const Ending& /*ending*/) override { return true; }
  void on_ending(tracee::Process& process, tracee::Thread& thread,
                 const Ending& /*ending*/) override {
    if (!records.empty()) return;
    thread.trace()->flush();
    const decoder::RecordRing& ring = thread.trace()->bts()->records();
    for (std::uint64_t i = ring.begin(); i != ring.end(); ++i) records.push_back(ring.at(i));
    const auto pc = thread.pc();
    ASSERT_TRUE(pc);
    decoder::PtEncoder encoder{process.insns()};
    encoder.encode(records, packets);
    encoder.finish(*pc, packets);
  }

  std::vector<Record> records;
  std::vector<std::uint8_t> packets;
};

class RecordHardware : public ::testing::Test {
 protected:
  RecordHardware() { kernel.devices["intel_pt/type"] = "9"; }
  /// Records the program with simulated hardware and returns the records of the kept file. Calls
  /// `fill` before the hardware's buffer is first read.
  std::vector<Record> recorded_by(SourceKind source,
                                  const std::function<void(test::SimulatedEvent&)>& fill) {
    bool once = true;
    const auto fill_once = [&](test::SimulatedEvent& event) {
      if (std::exchange(once, false)) fill(event);
    };
    // `fill` runs at whichever of these comes first.
    kernel.on_disable = fill_once;
    kernel.on_load = [&] {
      if (kernel.open_events() != 0 && kernel.last().enabled) fill_once(kernel.last());
    };
    Recorder recorder{by(source, &kernel)};
    CrashFiles files{recorder,
                     {.pattern = folder / "core", .keep = {}, .project = {}, .core = {}},
                     "crashes null"};
    recorder.add(files);
    const auto end = recorder.run(crashing("null"));
    if (!end) {
      ADD_FAILURE() << end.error().message();
      return {};
    }
    EXPECT_EQ(end->kind, tracee::StopKind::kProcessSignalled);
    EXPECT_NE(files.finish(*end), "");
    const auto bytes = tracee::bytes_of(folder / "core");
    const auto core = decoder::CoreFile::parse(bytes);
    if (!core) {
      ADD_FAILURE() << "no core";
      return {};
    }
    // Nobody saw the program's calls.
    EXPECT_EQ(core->about().at("foreign-writes"), "possible");
    return decoder::TraceArchive{*core}.load(static_cast<std::uint32_t>(end->thread.pid));
  }

  test::SimulatedPerf kernel;
  const test::TemporaryFolder folder;
};

TEST_F(RecordHardware, PacketsBecomeTheBranchesOfACrashFile) {
  Oracle stepped;
  Recorder recorder{by(SourceKind::kStep, nullptr)};
  recorder.add(stepped);
  ASSERT_TRUE(recorder.run(crashing("null")));
  ASSERT_GT(branches_of(stepped.records).size(), 1000U);
  const auto kept = recorded_by(SourceKind::kPerfPt, [&](test::SimulatedEvent& event) {
    event.snapshot_bytes(stepped.packets);
  });
  EXPECT_EQ(branches_of(kept), branches_of(stepped.records));
}

TEST_F(RecordHardware, TheLastBranchesBecomeThoseOfACrashFile) {
  constexpr std::size_t kDepth = 16;
  std::vector<Record> last;
  for (std::size_t i = 0; i < kDepth; ++i) {
    last.push_back(decoder::branch(TraceeAddr{0x1008 + 16 * i}, TraceeAddr{0x1010 + 16 * i}));
  }
  const auto kept = recorded_by(SourceKind::kLbr, [&](test::SimulatedEvent& event) {
    std::vector<std::uint64_t> sample{last.back().to.value(), kDepth};
    for (std::size_t i = kDepth; i-- != 0;) {
      sample.insert(sample.end(), {last[i].from.value(), last[i].to.value(), 0});
    }
    event.write(RecordType::kSample, 0, sample);
  });
  EXPECT_EQ(branches_of(kept), last);
}

TEST_F(RecordHardware, EveryThreadIsOneFromItsBirth) {
  Recorder recorder{by(SourceKind::kLbr, &kernel)};
  auto spec = crashing("");
  spec.program = std::string{BT_INFERIOR_DIR} + "/threads";
  spec.arguments.clear();
  ASSERT_TRUE(recorder.run(spec));
  EXPECT_EQ(kernel.opened.size(), 5U);
  EXPECT_EQ(kernel.open_events(), 0U);
}

}  // namespace
}  // namespace backtrail::server
