// SPDX-License-Identifier: Apache-2.0
#include "decoder/bts/branch_store.hpp"

#include <cerrno>
#include <new>
#include <stdexcept>
#include <utility>

namespace backtrail::decoder {

using arch::x86::BtsQualifier;

class BranchStore::OneOfMany final : public TraceConsumer {
 public:
  OneOfMany(BranchStore& store, std::uint32_t thread) : store_{store}, thread_{thread} {}
  void consume(std::span<const Record> records) override { store_.consume_of(thread_, records); }
  void consume_mark(const TraceMark& mark) override { store_.consume_mark_of(thread_, mark); }

 private:
  BranchStore& store_;
  std::uint32_t thread_;
};

TraceConsumer& BranchStore::listen_to(std::uint32_t thread) {
  auto& listener = threads_[thread];
  if (!listener) listener = std::make_unique<OneOfMany>(*this, thread);
  return *listener;
}

TraceConsumer& BranchStore::listen_to_whole(std::uint32_t thread) {
  auto& listener = whole_threads_[thread];
  if (!listener) listener = std::make_unique<Whole>(*this, thread);
  return *listener;
}

void BranchStore::note_missing(std::uint32_t thread) {
  if (capacity_ == 0 || !config_.trace) return;
  push({0, 0, BtsQualifier::kInvalid, thread});
}

Result<void> BranchStore::usable(const char* operation) const {
  if (!available_) return fail(errno_error(EOPNOTSUPP, operation));
  if (capacity_ == 0) return fail(errno_error(ENXIO, operation));
  return {};
}

Result<void> BranchStore::config(const StoreConfig& config) {
  if (!available_) return fail(errno_error(EOPNOTSUPP, "bts config"));
  const std::uint64_t capacity = config.size_bytes / sizeof(Slot);
  if (config.size_bytes != 0 && capacity == 0)
    return fail(errno_error(EINVAL, "bts config", config.size_bytes));
  std::vector<Slot> slots;
  try {
    slots.reserve(capacity);
  } catch (const std::bad_alloc&) {
    return fail(errno_error(ENOMEM, "bts config", config.size_bytes));
  } catch (const std::length_error&) {
    return fail(errno_error(ENOMEM, "bts config", config.size_bytes));
  }
  slots_ = std::move(slots);
  config_ = config;
  capacity_ = capacity;
  oldest_ = lost_ = 0;
  stopped_ = notified_ = false;
  return {};
}

Result<StoreStatus> BranchStore::status() const {
  BT_CHECKED(usable("bts status"));
  return StoreStatus{config_, slots_.size(), lost_, stopped_};
}

Result<std::uint64_t> BranchStore::size() const {
  BT_CHECKED(usable("bts size"));
  return slots_.size();
}

BranchStore::Entry BranchStore::entry_of(const Slot& slot) {
  Entry entry;
  entry.thread = slot.thread;
  entry.qualifier = slot.qualifier;
  if (slot.qualifier == BtsQualifier::kBranch) {
    entry.from = slot.from;
    entry.to = slot.to;
  } else {
    entry.timestamp = slot.to;
    entry.bound = static_cast<LossBound>(slot.from);
  }
  return entry;
}

Result<BranchStore::Entry> BranchStore::get(std::uint64_t index) const {
  BT_CHECKED(usable("bts get"));
  if (index >= slots_.size()) return fail(errno_error(EINVAL, "bts get", index));
  return entry_of(slots_[(oldest_ + slots_.size() - 1 - index) % slots_.size()]);
}

Result<void> BranchStore::clear() {
  BT_CHECKED(usable("bts clear"));
  slots_.clear();
  oldest_ = 0;
  stopped_ = notified_ = false;
  return {};
}

Result<std::vector<BranchStore::Entry>> BranchStore::drain() {
  BT_CHECKED(usable("bts drain"));
  std::vector<Entry> out;
  out.reserve(slots_.size());
  for (std::uint64_t i = 0; i < slots_.size(); ++i)
    out.push_back(entry_of(slots_[(oldest_ + i) % slots_.size()]));
  BT_CHECKED(clear());
  return out;
}

void BranchStore::notify() {
  if (std::exchange(notified_, true)) return;
  if (notify_) notify_(config_);
}

void BranchStore::push(const Slot& slot) {
  if (slots_.size() < capacity_) {
    slots_.push_back(slot);
    if (config_.overflow == StoreOverflow::kStream && slots_.size() >= capacity_ - capacity_ / 4)
      notify();
    return;
  }
  ++lost_;
  if (config_.overflow == StoreOverflow::kWrap) {
    slots_[oldest_] = slot;
    oldest_ = (oldest_ + 1) % capacity_;
    return;
  }
  stopped_ = config_.overflow == StoreOverflow::kSignal;
  notify();
}

void BranchStore::keep(const Record& record, std::uint32_t thread) {
  if (record.kind == RecordKind::kGap) {
    if (record.reason == GapReason::kStart) return;
    push(
        {static_cast<std::uint64_t>(record.bound), record.payload, BtsQualifier::kInvalid, thread});
  } else {
    push({record.from.value(), record.to.value(), BtsQualifier::kBranch, thread});
  }
}

void BranchStore::consume(std::span<const Record> records) {
  consume_of(0, records);
}

void BranchStore::consume_of(std::uint32_t thread, std::span<const Record> records) {
  if (capacity_ == 0 || !config_.trace || config_.level != StoreLevel::kUser) return;
  for (const Record& record : records) keep(record, thread);
}

void BranchStore::consume_whole(std::uint32_t thread, std::span<const Record> records) {
  if (capacity_ == 0 || !config_.trace || config_.level == StoreLevel::kUser) return;
  for (const Record& record : records) {
    const bool kernel = ((record.from.value() | record.to.value()) >> 63U) != 0;
    if (kernel || config_.level == StoreLevel::kBoth || record.kind == RecordKind::kGap) {
      keep(record, thread);
    }
  }
}

void BranchStore::consume_mark(const TraceMark& mark) {
  consume_mark_of(0, mark);
}

void BranchStore::consume_mark_of(std::uint32_t thread, const TraceMark& mark) {
  if (capacity_ == 0) return;
  const std::uint64_t kernel = pseudo_address(mark.kind).value();
  switch (mark.kind) {
    case MarkKind::kArrives:
      if (config_.sched) push({0, mark.time_ns, BtsQualifier::kTaskArrives, thread});
      return;
    case MarkKind::kDeparts:
    case MarkKind::kPreempted:
      if (config_.sched) push({0, mark.time_ns, BtsQualifier::kTaskDeparts, thread});
      return;
    case MarkKind::kCameBack:
      if (config_.kernel) push({kernel, mark.at.value(), BtsQualifier::kBranch, thread});
      return;
    default:
      if (config_.kernel) push({mark.at.value(), kernel, BtsQualifier::kBranch, thread});
      return;
  }
}

}  // namespace backtrail::decoder
