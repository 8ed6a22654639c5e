// SPDX-License-Identifier: Apache-2.0
// Takes threads' logs at stops and, if every record is kept, while they run.

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "arch/base/log.hpp"
#include "ptrace/codecache/recorder/cache_source.hpp"
#include "ptrace/tracee/process.hpp"
#include "ptrace/tracee/thread.hpp"

namespace backtrail::tracee {
namespace {

/// Limit on undecoded entries if every record is kept. CacheLog bounds its entries, so they are
/// handed on before that.
constexpr std::size_t kMostUndecoded = 64UL * 1024;

}  // namespace

void CacheSource::take_log(TraceeAddr log) {
  note_returned();
  const auto all = memory_->entries(log);
  take_entries(all.subspan(std::min(taken_, all.size())));
  if (busy_log_) {
    const bool begins_again = busy_log_->use_up(log);
    set_log(busy_log_->rest());
    if (begins_again) log_->forget(memory_->entries(memory_->log_end()));
  }
  begin_log();
}

void CacheSource::take_entries(std::span<const std::uint32_t> entries) {
  const StatisticsTimer timer{counts_ ? &sums_->reading_logs : nullptr};
  if (counts_) space_->code().exits()->count(entries, counted_);
  if (!streams_) {
    if (busy_log_) {
      log_->hold_entries(entries);
    } else {
      log_->add_entries(entries);
    }
    bound_undecoded();
    return;
  }
  while (!entries.empty()) {
    const auto part = entries.first(std::min(entries.size(), kMostUndecoded));
    log_->add_entries(part);
    hand_on();
    entries = entries.subspan(part.size());
  }
}

void CacheSource::bound_undecoded() {
  if (keeps_all_ && log_->waiting() * sizeof(std::uint32_t) >= cache::kRingBytes) hand_on();
}

void CacheSource::begin_log() {
  taken_ = 0;
  is_blank_ = streams_;
  if (is_blank_) memory_->blank_log();
}

void CacheSource::take_written() {
  // The newest entry is not final: at a stop before the step of the log pointer that follows it,
  // the thread is still before the exit.
  const auto all = memory_->written(taken_);
  if (all.size() <= taken_ + 1) return;
  note_returned();
  const auto certain = all.first(all.size() - 1);
  take_entries(certain.subspan(taken_));
  taken_ = certain.size();
}

void CacheSource::set_log(const cache::LogRange& log) {
  space_->memory().set_log(slot_, log);
  memory_->set_log(log);
}

void CacheSource::use_busy_log(Thread& thread) {
  auto busy = cache::BusyLog::begin(*space_, thread, history_bytes_);
  if (!busy) {
    log::ptrace().debug("tid={}: {}", thread.tid(), busy.error().message());
    return;
  }
  busy_log_ = std::move(*busy);
  set_log(busy_log_->rest());
  begin_log();
}

Result<void> CacheSource::stream(std::uint64_t /*size_bytes*/) {
  streams_ = true;
  if (memory_ && !in_cache_) begin_log();
  return {};
}

void CacheSource::pin(std::uint64_t id, std::uint32_t ahead) {
  // `ahead` counts from the beginning of the log.
  const auto taken = static_cast<std::uint32_t>(taken_);
  StepSource::pin(id, ahead - std::min(ahead, taken));
}

void CacheSource::hand_on() {
  StepSource::flush();
  if (log_) log_->drain(sink_);
}

std::uint64_t CacheSource::keep_newest(std::uint64_t branches) {
  return log_ ? log_->keep_newest(branches) : 0;
}

void CacheSource::forget() {
  StepSource::forget();
  if (log_) log_->clear();
}

std::unique_ptr<decoder::CacheLog> CacheSource::take_log_of_ended() {
  if (!log_ || in_cache_ || streams_) return nullptr;
  StepSource::flush();
  auto fresh = std::make_unique<decoder::CacheLog>(space_->code().exits(), 0);
  numbers_ += log_->numbers_seen();
  return std::exchange(log_, std::move(fresh));
}

void CacheSource::flush() {
  if (in_cache_ && is_blank_) take_written();
  hand_on();
}

std::string CacheSource::statistics() const {
  std::string text = fmt::format(
      "cache: {} exits logged, {} entries, {} misses, {} full logs, {} instructions stepped",
      numbers_ + (log_ ? log_->numbers_seen() : 0), entries_, misses_, rings_, native_steps_);
  if (space_) {
    const cache::CodeCache& code = space_->code();
    text += fmt::format("; {} superblocks of {} instructions, {} bytes of code, in {} bytes",
                        code.blocks(), code.instructions(), code.source_bytes(), code.bytes_used());
    if (const std::size_t protected_pages = space_->protected_pages().size();
        protected_pages != 0) {
      text += fmt::format("; {} write-protected pages", protected_pages);
    }
    if (code.retranslated() != 0)
      text += fmt::format("; {} retranslated by profile", code.retranslated());
    if (code.renewed() != 0) text += fmt::format("; {} retranslated after writes", code.renewed());
    if (code.cleared() != 0) text += fmt::format("; evicted {} times", code.cleared());
  }
  for (std::size_t i = 0; i < untranslatable_.size(); ++i) {
    if (untranslatable_[i] == 0) continue;
    text += fmt::format("; {} {}", untranslatable_[i],
                        to_string(static_cast<arch::cpu::translate::UntranslatableReason>(i)));
  }
  if (!why_stepping_.empty()) text += "; stepping: " + why_stepping_;
  if (process_.isa() != arch::Isa::kAmd64) text += "; stepping: a 32-bit program";
  if (space_ && space_->disabled()) text += "; stepping: " + space_->why_disabled();
  return text;
}

}  // namespace backtrail::tracee
