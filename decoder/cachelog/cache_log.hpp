#pragma once
/// @file
/// One thread's log of exit numbers, with what happened between them, and its way back to records.

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "arch/base/address.hpp"
#include "decoder/cachelog/exit_table.hpp"
#include "decoder/trace/record.hpp"
#include "decoder/trace/stream_pin.hpp"
#include "decoder/trace/trace_consumer.hpp"

namespace backtrail::decoder {

/// Turns exit numbers into branch records, oldest first. An indirect branch's target is the head of
/// the superblock that the next number names.
class CacheLogDecoder {
 public:
  explicit CacheLogDecoder(const ExitTable& exits) : exits_{exits} {}

  void numbers(std::span<const std::uint32_t> numbers, std::vector<Record>& out);
  /// The thread is at `at` now: the target of an indirect branch that waits for one.
  void arrive(TraceeAddr at, std::vector<Record>& out);
  /// An indirect branch waits for its target.
  [[nodiscard]] bool arriving() const { return indirect_from_.has_value(); }
  /// Numbers are missing here.
  void lose(std::vector<Record>& out);

 private:
  void begin_at(TraceeAddr at, std::vector<Record>& out);

  const ExitTable& exits_;
  std::optional<TraceeAddr> indirect_from_;
  bool lost_ = false;
};

/// Keeps undecoded numbers, the newest `limit_bytes` of them at least, until somebody wants
/// records. Entries that are no numbers (a signal, a stepped branch) keep their place among them.
class CacheLog {
 public:
  /// Told of memory that nothing was written to yet, before much is.
  using FreshMemory = void (*)(std::span<std::uint8_t> memory);

  /// `limit_bytes` counts numbers at four bytes each.
  CacheLog(std::shared_ptr<const ExitTable> exits, std::uint64_t limit_bytes,
           FreshMemory fresh_memory = nullptr);

  void add_numbers(std::span<const std::uint32_t> numbers);
  /// Without a copy: they stay where they are until they are drained, or forgotten.
  void hold_numbers(std::span<const std::uint32_t> numbers);
  /// That memory is going to be written again: nothing as old as what is held there is kept.
  void forget(std::span<const std::uint32_t> memory);
  /// Only the newest so many branches are wanted, and somewhat more may be kept: drops older
  /// numbers without decoding them. Returns how many branches they stood for.
  std::uint64_t keep_newest(std::uint64_t branches);
  /// Drops everything without decoding it. The next drain() begins with a gap.
  void clear();
  /// Keeps the newest so many numbers, in memory of its own that is no larger: whoever wrote held
  /// numbers may be gone afterwards. Returns how many branches the dropped ones stood for.
  std::uint64_t own_newest(std::uint64_t numbers);
  void add_arrival(TraceeAddr at);
  /// Pins, too: those with nothing ahead keep their place among what is no number.
  void add_record(const Record& record);
  /// Decodes everything, hands it on and forgets it.
  void drain(TraceConsumer& consumer);

  [[nodiscard]] bool empty() const { return chunks_.empty(); }
  /// Memory of what is kept, about.
  [[nodiscard]] std::uint64_t bytes() const { return held_ * sizeof(std::uint32_t); }
  [[nodiscard]] std::uint64_t numbers_seen() const { return numbers_seen_; }
  [[nodiscard]] std::uint64_t numbers_dropped() const { return numbers_dropped_; }

 private:
  struct Event {
    std::size_t before = 0;  ///< Stands in front of this many-th number of its chunk.
    std::optional<Record> record;
    TraceeAddr arrival;
  };
  struct Chunk {
    std::vector<std::uint32_t> copied;
    std::span<const std::uint32_t> held;  ///< If not empty, nothing is copied.
    std::vector<Event> events;

    [[nodiscard]] std::span<const std::uint32_t> numbers() const {
      return held.empty() ? std::span<const std::uint32_t>{copied} : held;
    }
    [[nodiscard]] std::uint64_t size() const { return numbers().size() + events.size(); }
  };
  /// For events.
  Chunk& open_chunk();
  /// With room for copies, of which so many come now.
  Chunk& open_copied(std::size_t coming);
  Chunk& new_chunk();
  /// Memory of a chunk that was dropped, to be used again.
  std::optional<Chunk> drop_old();
  Chunk drop_oldest();
  /// The first numbers of the oldest chunk.
  void drop_numbers(std::size_t count);
  void count_dropped(std::uint64_t numbers);
  void decode(const Chunk& chunk, TraceConsumer& consumer, std::vector<Record>& out);
  void tell(const Record& pin, TraceConsumer& consumer, std::vector<Record>& before);
  void decode_plain(std::span<const std::uint32_t> numbers, TraceConsumer& consumer,
                    std::vector<Record>& out);
  void decode_numbers(std::span<const std::uint32_t> numbers, TraceConsumer& consumer,
                      std::vector<Record>& out);

  std::shared_ptr<const ExitTable> exits_;
  FreshMemory fresh_memory_;
  CacheLogDecoder decoder_;
  std::deque<Chunk> chunks_;
  std::uint64_t limit_numbers_;
  std::uint64_t held_ = 0;
  std::uint64_t numbers_seen_ = 0;
  std::uint64_t numbers_dropped_ = 0;
  std::uint64_t numbers_done_ = 0;             ///< Decoded or dropped.
  std::multimap<std::uint64_t, Record> pins_;  ///< By the count of numbers that they stand behind.
  bool dropped_ = false;
};

}  // namespace backtrail::decoder
