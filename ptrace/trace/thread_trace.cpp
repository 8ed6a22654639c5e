// SPDX-License-Identifier: Apache-2.0
#include "ptrace/trace/thread_trace.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include <unistd.h>

#include "arch/base/log.hpp"
#include "arch/base/page.hpp"
#include "ptrace/codecache/persist/fixed_addresses.hpp"
#include "ptrace/codecache/recorder/cache_source.hpp"
#include "ptrace/codecache/recorder/file_watch.hpp"
#include "ptrace/perf/locked_memory.hpp"
#include "ptrace/source/hardware_source.hpp"
#include "ptrace/source/source_statistics.hpp"
#include "ptrace/source/step_source.hpp"
#include "ptrace/tracee/process.hpp"
#include "ptrace/tracee/thread.hpp"

namespace backtrail::tracee {
namespace {

/// gdb's "unlimited", and the largest size that its protocol can express.
constexpr std::uint64_t kUnlimited = 0xffffffff;

PerfKernel& perf_kernel(const TraceConfig& config) {
  return config.perf == nullptr ? system_perf_kernel() : *config.perf;
}

/// Maximum of locked memory for one thread.
constexpr std::uint64_t kMostLocked = 4ULL << 20;

/// Chooses the kernel's buffer for a history. It is locked memory that all threads share, so it
/// stays small; records that it cannot hold between two stops become a gap.
RecorderOptions recorder_options(const TraceConfig& config, std::size_t threads,
                                 std::optional<std::uint64_t> locked_limit) {
  if (config.every_record) {
    return {.mode = BufferMode::kStream,
            .size_bytes = stream_buffer_size(threads, locked_limit),
            .marks = false};
  }
  constexpr std::uint64_t kMost = kMostLocked;
  // A byte of encoded PT holds a few branches; each takes 24 bytes in the hardware's records.
  const std::uint64_t wanted = config.format == TraceFormat::kPt
                                   ? std::min(config.size_bytes, kMost) * 16
                                   : config.size_bytes;
  const std::uint64_t share = std::bit_floor(locked_memory_share(locked_limit, threads));
  return {
      .mode = BufferMode::kHistory, .size_bytes = std::min({wanted, kMost, share}), .marks = false};
}

/// Returns the size of a log that surely fills the requested history.
std::uint64_t log_bytes_for(const TraceConfig& config) {
  constexpr std::uint64_t kMost = 256ULL << 20;
  if (config.log_bytes != 0) return config.log_bytes;
  // A log entry is four bytes and stands for at least one branch: a BTS record, or a bit of PT.
  const std::uint64_t bytes = config.format == TraceFormat::kBts
                                  ? config.size_bytes / sizeof(decoder::Record) * 4
                                  : config.size_bytes * 8 * 4;
  return std::min(bytes, kMost);
}

}  // namespace

std::uint64_t stream_buffer_size(std::size_t threads, std::optional<std::uint64_t> locked_limit) {
  constexpr std::uint64_t kAllThreads = 64ULL << 20;
  constexpr std::uint64_t kLeast = 128ULL << 10;
  const std::uint64_t share = kAllThreads / std::max<std::size_t>(threads, 1);
  return std::bit_floor(
      std::min(std::clamp(share, kLeast, kMostLocked), locked_memory_share(locked_limit, threads)));
}

std::uint64_t granted_buffer_size(std::uint64_t wanted_bytes) {
  if (wanted_bytes == 0 || wanted_bytes > kUnlimited / 2) return kUnlimited;
  return std::bit_ceil((wanted_bytes + kPageBytes - 1) / kPageBytes) * kPageBytes;
}

ThreadTrace::ThreadTrace(Thread& thread, const TraceConfig& config, bool raw_packets)
    : config_{config}, thread_{thread}, id_{thread.id()} {
  config_.size_bytes = granted_buffer_size(config.size_bytes);
  if (raw_packets) {
    history_ = std::make_unique<decoder::PtRawHistory>(config_.size_bytes);
  } else {
    hub_.add(make_history(thread.process()));
  }
}

decoder::TraceConsumer& ThreadTrace::make_history(Process& process) {
  if (config_.format == TraceFormat::kBts) {
    history_ = std::make_unique<decoder::BtsHistory>(process.insns(), config_.size_bytes);
    return *bts();
  }
  history_ = std::make_unique<decoder::PtHistory>(process.insns(), config_.size_bytes);
  return *pt();
}

bool ThreadTrace::suits(const TraceConfig& config) const {
  if (wanted_ && std::holds_alternative<std::unique_ptr<decoder::BtsHistory>>(history_))
    return true;
  return config_.format == config.format &&
         config_.size_bytes == granted_buffer_size(config.size_bytes);
}

void ThreadTrace::hand_over(Process& process, TraceeAddr pc, const TraceConfig& config) {
  const bool same = config_.format == config.format &&
                    config_.size_bytes == granted_buffer_size(config.size_bytes);
  if (taken_back_) {
    flush();
    past_ = std::move(std::get<std::unique_ptr<decoder::BtsHistory>>(history_));
    config_.format = config.format;
    config_.size_bytes = granted_buffer_size(config.size_bytes);
    hub_.add(make_history(process), pc);
    return;
  }
  if (wanted_ && same) {
    if (decoder::BtsHistory* blocks = bts()) blocks->note_earlier_start();
    return;
  }
  flush();
  config_.format = config.format;
  config_.size_bytes = granted_buffer_size(config.size_bytes);
  if (wanted_) return remake_history(process);
  if (decoder::BtsHistory* blocks = bts()) hub_.remove(*blocks);
  if (decoder::PtHistory* packets = pt()) hub_.remove(*packets);
  hub_.add(make_history(process), pc);
}

/// Converts a history of records to the form in config_, with as many of the newest records as that
/// can hold.
void ThreadTrace::remake_history(Process& process) {
  auto old = std::move(std::get<std::unique_ptr<decoder::BtsHistory>>(history_));
  hub_.remove(*old);
  decoder::TraceConsumer& history = make_history(process);
  // A packet has at least one bit for each branch.
  const std::uint64_t most = config_.format == TraceFormat::kPt
                                 ? config_.size_bytes * 8
                                 : config_.size_bytes / sizeof(decoder::Record);
  const decoder::RecordRing& ring = old->records();
  std::uint64_t first = ring.end() - std::min(ring.size(), most);
  std::vector<decoder::Record> batch;
  constexpr std::size_t kBatch = 4096;
  if (first != ring.end() && first != 0) {
    batch.push_back(decoder::gap(decoder::GapReason::kStart, TraceeAddr{}, ring.at(first).to));
    ++first;
  }
  for (; first != ring.end(); ++first) {
    batch.push_back(ring.at(first));
    if (batch.size() == kBatch) {
      history.consume(batch);
      batch.clear();
    }
  }
  history.consume(batch);
  if (decoder::BtsHistory* blocks = bts()) blocks->note_earlier_start();
  hub_.add(history);
  if (!keeps_past_) return;
  hub_.add(*old);
  past_ = std::move(old);
}

void ThreadTrace::keep_past(bool on) {
  keeps_past_ = on;
  if (on || !past_) return;
  hub_.remove(*past_);
  past_.reset();
}

decoder::BtsHistory* ThreadTrace::past() {
  if (!keeps_past_) return nullptr;
  return past_ ? past_.get() : bts();
}

void ThreadTrace::take_back() {
  flush();
  set_asked_for(false);
  set_wanted();
  taken_back_ = true;
  if (!past_) return;
  if (decoder::BtsHistory* blocks = bts()) hub_.remove(*blocks);
  if (decoder::PtHistory* packets = pt()) hub_.remove(*packets);
  config_.format = TraceFormat::kBts;
  config_.size_bytes = past_->size_bytes();
  history_ = std::move(past_);
}

/// Sources of translated code count branches themselves.
void ThreadTrace::use(std::unique_ptr<BranchSource> source) {
  source_ = std::move(source);
  thread_.set_source(source_.get());
  if (config_.statistics && source_->kind() != SourceKind::kCache) hub_.add(branches_);
}

ThreadTrace::~ThreadTrace() {
  // Another trace of the thread may have begun already.
  if (thread_.source() == source_.get()) thread_.set_source(nullptr);
  if (source_) end();
  if (config_.statistics && source_ && source_->kind() != SourceKind::kCache) add_statistics();
}

void ThreadTrace::add_statistics() const {
  source_->flush();
  config_.statistics->branches += branches_.count();
  source_->add_to(*config_.statistics);
}

void BranchCounter::consume(std::span<const decoder::Record> records) {
  count_ += static_cast<std::uint64_t>(std::count_if(
      records.begin(), records.end(),
      [](const decoder::Record& record) { return record.kind == decoder::RecordKind::kBranch; }));
}

Result<std::unique_ptr<ThreadTrace>> ThreadTrace::start_hardware(Thread& thread, SourceKind source,
                                                                 const TraceConfig& config) {
  const bool raw = source == SourceKind::kPerfPt && config.format == TraceFormat::kPt;
  std::unique_ptr<ThreadTrace> trace{new ThreadTrace{thread, config, raw}};
  PerfKernel& kernel = perf_kernel(config);
  const RecorderOptions options =
      recorder_options(trace->config(), thread.process().threads().size(), kernel.locked_limit());
  BT_TRY(auto opened,
         make_hardware_source(source, thread, options, {trace->hub_, trace->raw_pt()}, kernel));
  trace->use(std::move(opened));
  return trace;
}

Result<std::unique_ptr<ThreadTrace>> ThreadTrace::start(Thread& thread, SourceKind source,
                                                        const TraceConfig& config) {
  if (is_hardware(source)) return start_hardware(thread, source, config);
  // Hardware would record translated code.
  const bool translated = thread.process().cache_space != nullptr;
  if (source == SourceKind::kAuto && thread.stopped() && !translated) {
    // PT can give records, too, at the price of decoding.
    auto candidates = std::array{SourceKind::kPerfPt, SourceKind::kPerfBts};
    if (config.format != TraceFormat::kPt) std::reverse(candidates.begin(), candidates.end());
    for (const SourceKind candidate : candidates) {
      if (auto trace = start_hardware(thread, candidate, config)) return trace;
    }
  }
  if (source != SourceKind::kStep && config.kept && thread.stopped()) cache::fix_addresses(thread);
  std::unique_ptr<ThreadTrace> trace{new ThreadTrace{thread, config, false}};
  std::optional<TraceeAddr> at;
  if (thread.stopped()) {
    BT_TRY(at, thread.next_pc());
  }
  const auto use = [&](auto made) {
    if (at) made->start_at(*at);
    trace->use(std::move(made));
  };
  if (source == SourceKind::kStep) {
    use(std::make_unique<StepSource>(thread.process(), trace->hub_,
                                     std::make_unique<cache::FileWatch>(thread.process())));
  } else {
    use(std::make_unique<CacheSource>(thread.process(), trace->hub_, log_bytes_for(trace->config()),
                                      trace->config()));
  }
  return trace;
}

Result<void> ThreadTrace::stream(std::size_t threads) {
  return source_->stream(stream_buffer_size(threads, perf_kernel(config_).locked_limit()));
}

bool ThreadTrace::keep_up() {
  const bool ahead = source_->keep_up();
  // Without a request, the log of translated code would stay undecoded.
  if (marks_ && !is_hardware(source_->kind())) source_->flush();
  hand_on_marks();
  return ahead;
}

int ThreadTrace::wake_fd() const {
  // If the source has a descriptor, it wakes often enough for the few marks as well.
  const int fd = source_->wake_fd();
  return fd < 0 && marks_ ? marks_->fd() : fd;
}

void ThreadTrace::flush() {
  source_->flush();
  hand_on_marks();
}

/// Returns the histories that get records from hub_: not those of raw packets.
std::vector<decoder::TraceConsumer*> ThreadTrace::listening_histories() {
  std::vector<decoder::TraceConsumer*> out;
  if (decoder::BtsHistory* blocks = bts()) out.push_back(blocks);
  if (decoder::PtHistory* packets = pt()) out.push_back(packets);
  if (past_) out.push_back(past_.get());
  return out;
}

void ThreadTrace::hand_on_or_forget() {
  if (hub_.empty() && whole_hub_.empty()) {
    source_->forget();
  } else {
    source_->flush();
  }
}

void ThreadTrace::spare_history() {
  const auto histories = listening_histories();
  if (config_.log_bytes != 0 || histories.empty()) return;
  for (decoder::TraceConsumer* history : histories) hub_.remove(*history);
  hand_on_or_forget();
  for (decoder::TraceConsumer* history : histories) hub_.add(*history);
}

void ThreadTrace::end() {
  if (config_.log_bytes != 0) return;
  for (decoder::TraceConsumer* history : listening_histories()) hub_.remove(*history);
  if (store_) {
    hub_.remove(*store_);
    whole_hub_.remove(store_->whole());
  }
  hand_on_or_forget();
}

void ThreadTrace::hand_on_marks() {
  if (!marks_) return;
  for (const decoder::TraceMark& mark : marks_->take()) hub_.consume_mark(mark);
}

Result<void> ThreadTrace::mark_switches() {
  if (marks_) return {};
  // Room for the marks of 20 ms, the longest time between two looks.
  constexpr std::uint64_t kRingBytes = 64 * kPageBytes;
  BT_TRY(marks_, SchedMarks::open(perf_kernel(config_), id_.tid, kRingBytes));
  return {};
}

Result<void> ThreadTrace::see_kernel() {
  if (sees_kernel_) return {};
  source_->flush();
  BT_CHECKED(source_->see_kernel(whole_hub_));
  sees_kernel_ = true;
  return {};
}

Result<void> ThreadTrace::start_clock() {
  if (bts() == nullptr) return fail(TraceErrc::kUnsupported, "times of packets");
  BT_TRY(clock_, ThreadClock::open(system_perf_kernel(), id_.tid, before_clock_, [this] {
           return bts() == nullptr ? 0 : bts()->records().end();
         }));
  hub_.add(*clock_);
  return {};
}

std::unique_ptr<EndedTrace> ThreadTrace::take_ended(std::uint64_t log_bytes) {
  if (bts() == nullptr) return nullptr;
  auto log = source_->take_log_of_ended();
  if (!log) source_->flush();
  hub_.remove(*bts());
  auto history = std::move(std::get<std::unique_ptr<decoder::BtsHistory>>(history_));
  return std::make_unique<EndedTrace>(std::move(history), std::move(log), log_bytes);
}

bool ThreadTrace::has_store() const {
  return store_ && store_->status().has_value();
}

decoder::BranchStore& ThreadTrace::store() {
  if (!store_) {
    store_ = std::make_unique<decoder::BranchStore>();
    store_->on_notify([this](const decoder::StoreConfig& config) {
      log::ptrace().info("tid={}: the branch store is full", id_.tid);
      if (config.signal != 0) thread_.send(config.signal);
    });
    hub_.add(*store_);
    whole_hub_.add(store_->whole());
  }
  return *store_;
}

decoder::PtRawHistory* ThreadTrace::raw_pt() {
  auto* history = std::get_if<std::unique_ptr<decoder::PtRawHistory>>(&history_);
  return history == nullptr ? nullptr : history->get();
}

decoder::BtsHistory* ThreadTrace::bts() {
  auto* history = std::get_if<std::unique_ptr<decoder::BtsHistory>>(&history_);
  return history == nullptr ? nullptr : history->get();
}

decoder::PtHistory* ThreadTrace::pt() {
  auto* history = std::get_if<std::unique_ptr<decoder::PtHistory>>(&history_);
  return history == nullptr ? nullptr : history->get();
}

}  // namespace backtrail::tracee
