// SPDX-License-Identifier: Apache-2.0
#include "ptrace/source/hardware_source.hpp"

#include <sys/ptrace.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>

#include "arch/base/log.hpp"
#include "decoder/pt/pt_record_stream.hpp"
#include "ptrace/os/process_files.hpp"
#include "ptrace/os/procfs.hpp"
#include "ptrace/perf/bts_trial.hpp"
#include "ptrace/perf/lbr_recorder.hpp"
#include "ptrace/perf/perf_holders.hpp"
#include "ptrace/perf/pt_recorder.hpp"
#include "ptrace/source/probe.hpp"
#include "ptrace/tracee/process.hpp"
#include "ptrace/tracee/thread.hpp"

namespace backtrail::tracee {
namespace {

/// Common part: the thread runs as if it were not recorded, and at a stop everything is drained.
class HardwareSource : public BranchSource {
 public:
  Result<void> resume(Thread& thread, const SourceResume& how) override {
    resumed();
    if (how.step) thread.trap_flag().before_step(thread);
    return thread.run(how.step       ? RunRequest::kStep
                      : how.syscalls ? RunRequest::kSyscall
                                     : RunRequest::kContinue,
                      how.signal);
  }
  StopVerdict on_stop(Thread& thread, const WaitStatus& status) override {
    // Reading the pc waits until the thread is off its CPU; by then the kernel has emptied its
    // buffer.
    const auto pc = thread.pc();
    if (!pc) {
      drain(std::nullopt);
    } else if (status.is_event(PTRACE_EVENT_EXEC)) {
      drain(std::nullopt);
      note_gap(decoder::gap(decoder::GapReason::kExec, TraceeAddr{}, *pc));
    } else {
      drain(*pc);
    }
    return StopVerdict::kReport;
  }
  void on_pc_written(TraceeAddr from, TraceeAddr to) override {
    drain(from);
    note_gap(decoder::gap(decoder::GapReason::kPcChanged, from, to));
  }
  void on_code_written(TraceeAddr /*begin*/, TraceeAddr /*end*/) override {}
  void flush() override { drain(std::nullopt); }
  void detach(Thread& /*thread*/) override {}
  bool keep_up() override {
    constexpr unsigned kTooMuch = 50;
    ++readings_;
    fullest_ = std::max(fullest_, percent_full());
    drain(std::nullopt);
    const bool ahead = percent_full() >= kTooMuch;
    if (ahead) ++holds_;
    return ahead;
  }
  [[nodiscard]] std::string statistics() const override {
    if (readings_ == 0) return recorder_statistics();
    return fmt::format("{}; read {} times while it ran, at most {} % full, held back {} times",
                       recorder_statistics(), readings_, fullest_, holds_);
  }

 protected:
  [[nodiscard]] virtual std::string recorder_statistics() const = 0;
  [[nodiscard]] virtual unsigned percent_full() const = 0;
  virtual void resumed() = 0;
  virtual void drain(std::optional<TraceeAddr> pc) = 0;
  virtual void note_gap(const decoder::Record& record) = 0;

 private:
  std::uint64_t readings_ = 0;
  std::uint64_t holds_ = 0;
  unsigned fullest_ = 0;
};

/// Returns the descriptor of a recorder whose buffer is not overwritten; otherwise -1.
template <typename Recorder>
int wake_fd_of(const Recorder& recorder) {
  if (recorder.ended() || recorder.event().mode() != BufferMode::kStream) return -1;
  return recorder.event().fd();
}

class PerfBtsSource final : public HardwareSource {
 public:
  explicit PerfBtsSource(std::unique_ptr<BtsRecorder> recorder) : recorder_{std::move(recorder)} {}
  [[nodiscard]] SourceKind kind() const override { return SourceKind::kPerfBts; }
  Result<void> stream(std::uint64_t size_bytes) override { return recorder_->stream(size_bytes); }
  Result<void> see_kernel(decoder::TraceConsumer& whole) override {
    return recorder_->see_kernel(whole);
  }
  [[nodiscard]] int wake_fd() const override { return wake_fd_of(*recorder_); }

 private:
  [[nodiscard]] std::string recorder_statistics() const override { return recorder_->statistics(); }
  [[nodiscard]] unsigned percent_full() const override { return recorder_->percent_full(); }
  void resumed() override { recorder_->resumed(); }
  void drain(std::optional<TraceeAddr> pc) override { recorder_->drain(pc); }
  void note_gap(const decoder::Record& record) override { recorder_->insert(record); }

  std::unique_ptr<BtsRecorder> recorder_;
};

/// Returns the program's executable files, for a decoder that reads code faster from files than
/// from memory.
std::vector<decoder::PtCodeFile> code_files(pid_t pid) {
  std::vector<decoder::PtCodeFile> files;
  const ProcFs proc;
  const auto maps = proc.maps(pid);
  if (!maps) return files;
  for (const MapEntry& map : *maps) {
    if (!map.execute || map.write || map.path.empty() || map.path.front() != '/') continue;
    // The file may be inside a container.
    const auto path =
        find_mapped_file(pid, map.path, map.inode, makedev(map.device_major, map.device_minor));
    files.push_back({path.value_or(proc.path(pid, "root") + map.path), map.offset,
                     map.end - map.start, TraceeAddr{map.start}});
  }
  return files;
}

/// Passes packets to a consumer of packets, and to a decoder for consumers of records.
class PtFork final : public decoder::PtPacketConsumer {
 public:
  PtFork(Process& process, const HardwareSink& sink)
      : pid_{process.pid()},
        hub_{sink.records},
        raw_{sink.packets},
        stream_{decoder::PtDecoder{process.insns(), this_machine().cpu}, sink.records} {}

  void append(std::span<const std::uint8_t> packets) override {
    if (raw_ != nullptr) raw_->append(packets);
    stream_.append(packets);
  }
  void hole() override {
    if (raw_ != nullptr) raw_->hole();
    stream_.hole();
  }
  void clear() override {
    if (raw_ != nullptr) raw_->clear();
    stream_.clear();
  }
  void insert(const decoder::Record& record) {
    // Packets say by themselves where tracing went on; only a new program needs a fresh start.
    if (raw_ != nullptr && record.reason == decoder::GapReason::kExec) raw_->clear();
    if (!hub_.empty()) stream_.insert(record);
  }
  void hand_on() {
    if (hub_.empty()) return stream_.skip();
    stream_.decoder().set_files(code_files(pid_));
    stream_.flush();
  }

 private:
  pid_t pid_;
  decoder::TraceHub& hub_;
  decoder::PtPacketConsumer* raw_;
  decoder::PtRecordStream stream_;
};

class PerfPtSource final : public HardwareSource {
 public:
  PerfPtSource(std::unique_ptr<PtFork> packets, std::unique_ptr<PtRecorder> recorder)
      : packets_{std::move(packets)}, recorder_{std::move(recorder)} {}
  [[nodiscard]] SourceKind kind() const override { return SourceKind::kPerfPt; }
  Result<void> stream(std::uint64_t size_bytes) override { return recorder_->stream(size_bytes); }
  [[nodiscard]] int wake_fd() const override { return wake_fd_of(*recorder_); }

 private:
  [[nodiscard]] std::string recorder_statistics() const override { return recorder_->statistics(); }
  [[nodiscard]] unsigned percent_full() const override { return recorder_->percent_full(); }
  void resumed() override { recorder_->resumed(); }
  void drain(std::optional<TraceeAddr> pc) override {
    recorder_->drain(pc.has_value());
    packets_->hand_on();
  }
  void note_gap(const decoder::Record& record) override { packets_->insert(record); }

  std::unique_ptr<PtFork> packets_;
  std::unique_ptr<PtRecorder> recorder_;
};

class LbrSource final : public HardwareSource {
 public:
  explicit LbrSource(std::unique_ptr<LbrRecorder> recorder) : recorder_{std::move(recorder)} {}
  [[nodiscard]] SourceKind kind() const override { return SourceKind::kLbr; }
  [[nodiscard]] int wake_fd() const override { return wake_fd_of(*recorder_); }

 private:
  [[nodiscard]] std::string recorder_statistics() const override { return recorder_->statistics(); }
  [[nodiscard]] unsigned percent_full() const override { return recorder_->percent_full(); }
  void resumed() override { recorder_->resumed(); }
  void drain(std::optional<TraceeAddr> pc) override { recorder_->drain(pc); }
  void note_gap(const decoder::Record& record) override { recorder_->insert(record); }

  std::unique_ptr<LbrRecorder> recorder_;
};

/// Returns whether perf-bts really records BTS. Tried once, and again if the unit was busy.
bool is_bts(PerfKernel& kernel) {
  static std::optional<BtsTrial> verdict;
  if (pmu_type(kernel, "intel_bts")) return true;  // intel_bts records nothing else
  if (!verdict || *verdict == BtsTrial::kRefused) verdict = try_bts(kernel);
  return *verdict != BtsTrial::kSampler;
}

Result<std::unique_ptr<BranchSource>> open_source(SourceKind kind, Thread& thread, TraceeAddr pc,
                                                  const RecorderOptions& options,
                                                  const HardwareSink& sink, PerfKernel& kernel) {
  const MachineFacts& machine = this_machine();
  decoder::InsnCache& insns = thread.process().insns();
  switch (kind) {
    case SourceKind::kPerfBts: {
      const bool bts = machine.intel() && machine.flag_bts && machine.flag_dtes64 && is_bts(kernel);
      BT_TRY(auto recorder,
             BtsRecorder::open(kernel, thread.tid(), bts, options, insns, sink.records));
      BT_CHECKED(recorder->start(pc));
      return std::unique_ptr<BranchSource>{new PerfBtsSource{std::move(recorder)}};
    }
    case SourceKind::kPerfPt: {
      auto packets = std::make_unique<PtFork>(thread.process(), sink);
      BT_TRY(auto recorder, PtRecorder::open(kernel, thread.tid(), options, *packets));
      BT_CHECKED(recorder->start());
      return std::unique_ptr<BranchSource>{
          new PerfPtSource{std::move(packets), std::move(recorder)}};
    }
    case SourceKind::kLbr: {
      BT_TRY(auto recorder,
             LbrRecorder::open(kernel, thread.tid(), options.size_bytes, insns, sink.records));
      BT_CHECKED(recorder->start(pc));
      return std::unique_ptr<BranchSource>{new LbrSource{std::move(recorder)}};
    }
    default:
      return fail(TraceErrc::kUnsupported, to_string(kind).data());
  }
}

}  // namespace

Result<std::unique_ptr<BranchSource>> make_hardware_source(SourceKind kind, Thread& thread,
                                                           const RecorderOptions& options,
                                                           const HardwareSink& sink,
                                                           PerfKernel& kernel) {
  BT_TRY(const TraceeAddr pc, thread.pc());
  auto source = open_source(kind, thread, pc, options, sink, kernel);
  if (!source) {
    const bool busy = source.error().code.value() == EBUSY;
    log::ptrace().info("tid={}: {}: {}{}", thread.tid(), to_string(kind),
                       explain_perf_error(source.error()), busy ? perf_holders_text() : "");
  }
  return source;
}

}  // namespace backtrail::tracee
