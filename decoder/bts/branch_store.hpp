#pragma once
/// @file
/// The branch trace store as its first interface had it (2007): configure, status, size, get,
/// clear, drain, with the same errors, over every source of today.

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
  kWrap,    ///< The oldest entry makes room: a debugger wants the last N.
  kSignal,  ///< When it is full it stops and notifies once; what comes then is lost and counted.
  kStream,  ///< It notifies at three quarters, to be drained; what finds no room is lost and
            ///< counted.
};

/// Whose branches are kept.
enum class StoreLevel : std::uint8_t {
  kUser,    ///< The program's.
  kKernel,  ///< The kernel's, the ways in and out among them.
  kBoth,
};

struct StoreConfig {
  std::uint64_t size_bytes = 0;  ///< 24 bytes an entry; 0 frees the store.
  bool trace = true;             ///< Branches are kept.
  bool sched = false;            ///< And when the thread gets and leaves a CPU.
  bool kernel = false;  ///< And when it enters the kernel and comes back, by pseudo address.
  StoreLevel level = StoreLevel::kUser;
  StoreOverflow overflow = StoreOverflow::kWrap;
  int signal = 0;  ///< What notifying means, for whoever connects it; 0 = a line in the log.
  bool operator==(const StoreConfig&) const = default;
};

struct StoreStatus {
  StoreConfig config;
  std::uint64_t entries = 0;
  std::uint64_t lost = 0;  ///< Overwritten or without room, since it was configured.
  bool stopped = false;    ///< Full, with StoreOverflow::kSignal.
};

/// Entries are in the neutral form; a gap in the trace is a kInvalid entry with the loss, if it is
/// known, as its timestamp. All errors are errno values:
///
///     EOPNOTSUPP  there is nothing to trace with
///     ENXIO       no store is configured
///     EINVAL      the index or the size makes no sense
///     ENOMEM      the size cannot be had
class BranchStore : public TraceConsumer {
 public:
  struct Entry : arch::x86::BtsEntry {
    std::uint32_t thread = 0;  ///< As listen_to() named it; 0 = the store is of one thread.
    LossBound bound = LossBound::kExact;  ///< Of a gap's loss.
    bool operator==(const Entry&) const = default;
  };

  /// @param source_available  False: every call is EOPNOTSUPP.
  explicit BranchStore(bool source_available = true) : available_{source_available} {}
  BranchStore(const BranchStore&) = delete;
  BranchStore& operator=(const BranchStore&) = delete;

  /// Allocation and configuration are one. A new configuration empties the store. Memory is taken
  /// as it fills; none of it is locked.
  Result<void> config(const StoreConfig& config);
  [[nodiscard]] Result<StoreStatus> status() const;
  [[nodiscard]] Result<std::uint64_t> size() const;
  /// 0 is the newest.
  [[nodiscard]] Result<Entry> get(std::uint64_t index) const;
  Result<void> clear();
  /// Everything, oldest first, and then it is empty.
  Result<std::vector<Entry>> drain();
  /// Called when it overflows (kSignal) or should be drained (kStream), once until it is.
  void on_notify(std::function<void(const StoreConfig&)> notify) { notify_ = std::move(notify); }

  void consume(std::span<const Record> records) override;
  void consume_mark(const TraceMark& mark) override;
  /// For the kernel's branches: who listens to a stream of all levels. Such a store does not want
  /// what consume() gets.
  [[nodiscard]] TraceConsumer& whole() { return whole_; }
  /// For the records of one thread of several, whose entries have that number: one listener for
  /// each number, as long as the store lives.
  [[nodiscard]] TraceConsumer& listen_to(std::uint32_t thread);
  /// whole() of that thread.
  [[nodiscard]] TraceConsumer& listen_to_whole(std::uint32_t thread);
  /// Something of that thread's that the configuration asks for cannot be had, nobody knows how
  /// much: an entry says so.
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
    std::uint64_t from;  ///< Of a gap: a LossBound.
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
  std::vector<Slot> slots_;   ///< A ring once it is full.
  std::uint64_t oldest_ = 0;  ///< In slots_, once that is full.
  std::uint64_t lost_ = 0;
  bool stopped_ = false;
  bool notified_ = false;
  std::function<void(const StoreConfig&)> notify_;
};

}  // namespace backtrail::decoder
