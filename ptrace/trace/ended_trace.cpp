// SPDX-License-Identifier: Apache-2.0
#include "ptrace/trace/ended_trace.hpp"

#include <utility>

#include "decoder/bts/bts_history.hpp"
#include "decoder/cachelog/cache_log.hpp"

namespace backtrail::tracee {

EndedTrace::EndedTrace(std::unique_ptr<decoder::BtsHistory> history,
                       std::unique_ptr<decoder::CacheLog> log, std::uint64_t log_bytes)
    : history_{std::move(history)}, log_{std::move(log)} {
  if (log_) lost_ = log_->own_newest(log_bytes / sizeof(std::uint32_t));
}

EndedTrace::~EndedTrace() = default;

std::uint64_t EndedTrace::bytes() const {
  return history_->records().size() * sizeof(decoder::Record) + (log_ ? log_->bytes() : 0);
}

void EndedTrace::shorten(std::uint64_t bytes) {
  if (this->bytes() <= bytes) return;
  // Records take six times as much memory as the log entries they come from.
  history_->keep_newest(bytes * 6 / sizeof(decoder::Record));
  if (log_) lost_ += log_->own_newest(bytes / sizeof(std::uint32_t));
}

const decoder::RecordRing& EndedTrace::records() {
  if (!log_) return history_->records();
  // One more, because a gap for the omitted branches comes first, which must not take a branch's
  // place.
  const std::uint64_t room = history_->size_bytes() / sizeof(decoder::Record);
  // Branches that were decoded while the thread lived were of interest, so the rest may displace
  // only a few of them.
  const bool is_new = history_->records().size() == 0;
  const std::uint64_t left_out = log_->keep_newest(is_new ? room + 1 : room / 8);
  lost_ += left_out;
  log_->drain(*history_);
  log_.reset();
  return history_->records();
}

}  // namespace backtrail::tracee
