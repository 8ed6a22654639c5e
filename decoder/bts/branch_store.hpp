// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The branch trace store with its first interface (2007): configure, status, size, get, clear,
/// drain, with the same errors, over every source of today.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "arch/base/result.hpp"
#include "arch/x86/bts/ds_area.hpp"
#include "decoder/trace/trace_consumer.hpp"

namespace backtrail::decoder {

enum class StoreOverflow : std::uint8_t {
  kWrap,    ///< A new entry replaces the oldest. For a debugger that wants the last N.
  kSignal,  ///< When full, it stops and notifies once; later entries are lost and counted.
  kStream,  ///< Notifies at three quarters so that it can be drained; entries without room are lost
            ///< and counted.
};

/// Which branches are kept.
enum class StoreLevel : std::uint8_t {
  kUser,    ///< The program's.
  kKernel,  ///< The kernel's, including entries and returns.
  kBoth,
};

struct StoreConfig {
  std::uint64_t size_bytes = 0;  ///< 24 bytes for each entry; 0 frees the store.
  bool trace = true;             ///< Keeps branches.
  bool sched = false;            ///< Keeps entries for when the thread gets or leaves a CPU.
  bool kernel = false;  ///< Keeps entries for kernel entries and returns, as pseudo addresses.
  StoreLevel level = StoreLevel::kUser;
  StoreOverflow overflow = StoreOverflow::kWrap;
  int signal = 0;  ///< Signal to send on a notification; 0 for a log line only.
  bool operator==(const StoreConfig&) const = default;
};

struct StoreStatus {
  StoreConfig config;
  std::uint64_t entries = 0;
  std::uint64_t lost = 0;  ///< Entries overwritten or without room since config().
  bool stopped = false;    ///< Full, with StoreOverflow::kSignal.
};

/// A store of entries in the neutral form. A gap in the trace is a kInvalid entry whose timestamp
/// is the number of lost records, if known. All errors are errno values:
///
///     EOPNOTSUPP  no trace source is available
///     ENXIO       no store is configured
///     EINVAL      invalid index or size
///     ENOMEM      not enough memory for the size
class BranchStore : public TraceConsumer {
 public:
  struct Entry : arch::x86::BtsEntry {
    std::uint32_t thread = 0;  ///< The number given to listen_to(); 0 if the store has one thread.
    LossBound bound = LossBound::kExact;  ///< Precision of a gap's loss.
    bool operator==(const Entry&) const = default;
  };

  /// @param source_available  If false, every call fails with EOPNOTSUPP.
  explicit BranchStore(bool source_available = true) : available_{source_available} {}
  BranchStore(const BranchStore&) = delete;
  BranchStore& operator=(const BranchStore&) = delete;

  /// Allocates and configures the store, and empties it. Memory is used as it fills and is not
  /// locked.
  Result<void> config(const StoreConfig& config);
  [[nodiscard]] Result<StoreStatus> status() const;
  [[nodiscard]] Result<std::uint64_t> size() const;
  /// Returns an entry; index 0 is the newest.
  [[nodiscard]] Result<Entry> get(std::uint64_t index) const;
  Result<void> clear();
  /// Returns all entries, oldest first, and empties the store.
  Result<std::vector<Entry>> drain();
  /// Sets the function to call when the store overflows (kSignal) or should be drained (kStream);
  /// called once until it is emptied.
  void on_notify(std::function<void(const StoreConfig&)> notify) { notify_ = std::move(notify); }

  void consume(std::span<const Record> records) override;
  void consume_mark(const TraceMark& mark) override;
  /// The consumer for a stream of all levels. A store that keeps kernel branches ignores consume().
  [[nodiscard]] TraceConsumer& whole() { return whole_; }
  /// Returns the consumer for one thread of several, whose entries get that number. It lives as
  /// long as the store.
  [[nodiscard]] TraceConsumer& listen_to(std::uint32_t thread);
  /// Returns whole() for that thread.
  [[nodiscard]] TraceConsumer& listen_to_whole(std::uint32_t thread);
  /// Adds an entry for an unknown amount of data of that thread that was asked for but is not
  /// available.
  void note_missing(std::uint32_t thread);

 private:
  class OneOfMany;
  class Whole : public TraceConsumer {
   public:
    Whole(BranchStore& store, std::uint32_t thread) : store_{store}, thread_{thread} {}
    void consume(std::span<const Record> records) override {
      store_.consume_whole(thread_, records);
    }

   private:
    BranchStore& store_;
    std::uint32_t thread_;
  };
  struct Slot {
    std::uint64_t from;  ///< For a gap, a LossBound.
    std::uint64_t to;
    arch::x86::BtsQualifier qualifier;
    std::uint32_t thread = 0;
  };
  static_assert(sizeof(Slot) == 24);

  [[nodiscard]] Result<void> usable(const char* operation) const;
  [[nodiscard]] static Entry entry_of(const Slot& slot);
  void keep(const Record& record, std::uint32_t thread);
  void consume_of(std::uint32_t thread, std::span<const Record> records);
  void consume_mark_of(std::uint32_t thread, const TraceMark& mark);
  void consume_whole(std::uint32_t thread, std::span<const Record> records);
  void push(const Slot& slot);
  void notify();

  bool available_;
  Whole whole_{*this, 0};
  std::map<std::uint32_t, std::unique_ptr<TraceConsumer>> threads_;
  std::map<std::uint32_t, std::unique_ptr<TraceConsumer>> whole_threads_;
  StoreConfig config_;
  std::uint64_t capacity_ = 0;
  std::vector<Slot> slots_;   ///< Used as a ring once it is full.
  std::uint64_t oldest_ = 0;  ///< Index of the oldest entry once slots_ is full.
  std::uint64_t lost_ = 0;
  bool stopped_ = false;
  bool notified_ = false;
  std::function<void(const StoreConfig&)> notify_;
};

}  // namespace backtrail::decoder
