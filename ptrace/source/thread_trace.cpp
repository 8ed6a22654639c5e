#include "ptrace/source/thread_trace.hpp"

#include <algorithm>
#include <bit>

#include "ptrace/cache/cache_source.hpp"
#include "ptrace/source/step_source.hpp"
#include "ptrace/tracee/process.hpp"
#include "ptrace/tracee/thread.hpp"

namespace backtrail::tracee {
namespace {

constexpr std::uint64_t kPageBytes = 4096;
/// gdb's "unlimited", and the largest size its protocol can name.
constexpr std::uint64_t kUnlimited = 0xffffffff;

/// How much of a log of exits surely fills the history that was asked for.
std::uint64_t log_bytes_for(const TraceConfig& config) {
  constexpr std::uint64_t kMost = 256ULL << 20;
  if (config.log_bytes != 0) return config.log_bytes;
  // A log entry is four bytes and at least one branch: a BTS record, or a bit of PT.
  const std::uint64_t bytes = config.format == TraceFormat::kBts
                                  ? config.size_bytes / sizeof(decoder::Record) * 4
                                  : config.size_bytes * 8 * 4;
  return std::min(bytes, kMost);
}

}  // namespace

std::uint64_t granted_buffer_size(std::uint64_t wanted_bytes) {
  if (wanted_bytes == 0 || wanted_bytes > kUnlimited / 2) return kUnlimited;
  return std::bit_ceil((wanted_bytes + kPageBytes - 1) / kPageBytes) * kPageBytes;
}

ThreadTrace::ThreadTrace(Process& process, const TraceConfig& config) : config_{config} {
  config_.size_bytes = granted_buffer_size(config.size_bytes);
  if (config_.format == TraceFormat::kBts) {
    auto history = std::make_unique<decoder::BtsHistory>(process.insns(), config_.size_bytes);
    hub_.add(*history);
    history_ = std::move(history);
  } else {
    auto history = std::make_unique<decoder::PtHistory>(process.insns(), config_.size_bytes);
    hub_.add(*history);
    history_ = std::move(history);
  }
}

ThreadTrace::~ThreadTrace() = default;

Result<std::unique_ptr<ThreadTrace>> ThreadTrace::start(Thread& thread, SourceKind source,
                                                        const TraceConfig& config) {
  if (source != SourceKind::kAuto && source != SourceKind::kStep && source != SourceKind::kCache) {
    return fail(TraceErrc::kUnsupported, to_string(source).data());
  }
  std::unique_ptr<ThreadTrace> trace{new ThreadTrace{thread.process(), config}};
  std::unique_ptr<StepSource> step;
  if (source == SourceKind::kCache) {
    step = std::make_unique<CacheSource>(thread.process(), trace->hub_,
                                         log_bytes_for(trace->config()), trace->config());
  } else {
    step = std::make_unique<StepSource>(thread.process(), trace->hub_);
  }
  if (thread.stopped()) {
    BT_TRY(const TraceeAddr pc, thread.pc());
    step->start_at(pc);
  }
  trace->source_ = std::move(step);
  return trace;
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
