// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// One thread's log of exit ids, with the events between them, and its decoder.

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "arch/base/address.hpp"
#include "decoder/cachelog/executed_code.hpp"
#include "decoder/cachelog/exit_table.hpp"
#include "decoder/cachelog/value_stream.hpp"
#include "decoder/trace/executed_insn.hpp"
#include "decoder/trace/record.hpp"
#include "decoder/trace/stream_pin.hpp"
#include "decoder/trace/trace_consumer.hpp"

namespace backtrail::decoder {

/// Turns log entries into branch records, oldest first. The target of an indirect branch is the
/// start pc of the superblock that the next entry's exit belongs to.
class CacheLogDecoder {
 public:
  /// Borrows `exits`.
  explicit CacheLogDecoder(const ExitTable& exits) : exits_{exits}, code_{exits} {}

  void entries(std::span<const std::uint32_t> entries, std::vector<Record>& out);
  /// From the next entry on, the entries' values begin at number `first` of `values`, which must
  /// outlive the next call; null: their values are not known.
  void use_values(const ValueStream* values, std::uint64_t first) {
    values_ = values;
    next_value_ = first;
  }
  /// Reports that the thread is at `at`, which is the target of a pending indirect branch.
  void arrive(TraceeAddr at, std::vector<Record>& out);
  /// Returns true if an indirect branch has no target yet.
  [[nodiscard]] bool arriving() const { return indirect_from_.has_value(); }
  /// Adds the record of a branch that was stepped, or of another event.
  void add(const Record& record, std::vector<Record>& out);
  /// Reports what code the thread has executed; see ExecutedCode::execute().
  void execute(std::uint32_t block, std::size_t passed, std::optional<TraceeAddr> end,
               std::vector<Record>& out);
  /// Reports an instruction that was stepped; see ExecutedCode::step().
  void step(TraceeAddr pc, const ExecutedInsn& insn, std::vector<Record>& out);
  /// Adds a fact of memory (arch::is_of_memory) at the present place, or, if that is not known yet,
  /// after it.
  void add_memory(const ValueFact& fact, std::vector<Record>& out);
  /// Reports that log entries are missing here.
  void lose(std::vector<Record>& out);
  /// Reports that nothing more is known for now.
  void pause(std::vector<Record>& out);
  /// The facts of what was reported, with the number of records in `out` for ValueFact::record. The
  /// caller takes them, and may add others.
  [[nodiscard]] std::vector<ValueFact>& facts() { return facts_; }

 private:
  void begin_at(TraceeAddr at, std::vector<Record>& out);
  void tell_waiting(std::vector<Record>& out);
  /// Adds the facts of a superblock that `exit` left, whose branches are in `out` from `before` on.
  /// Those from the fact `first` on are put in order.
  void add_facts(std::uint32_t exit_id, const LoggedExit& exit, std::size_t before,
                 std::size_t first);

  const ExitTable& exits_;
  std::optional<TraceeAddr> indirect_from_;
  bool lost_ = false;
  const ValueStream* values_ = nullptr;
  std::uint64_t next_value_ = 0;
  ExecutedCode code_;
  std::vector<ValueFact> facts_;
  std::vector<ValueFact> waiting_;  ///< Facts of memory at a place that is not known yet.
};

/// Keeps log entries undecoded, at least the newest `limit_bytes`, until records are asked for.
/// Events without an exit (a signal, a stepped branch) keep their place among them.
class CacheLog {
 public:
  /// Receives memory that has not been written to yet, before much of it is written.
  using FreshMemory = void (*)(std::span<std::uint8_t> memory);

  /// `limit_bytes` counts four bytes for each entry.
  CacheLog(std::shared_ptr<const ExitTable> exits, std::uint64_t limit_bytes,
           FreshMemory fresh_memory = nullptr);

  /// Appends a copy of log entries.
  void add_entries(std::span<const std::uint32_t> entries);
  /// Appends log entries without copying. They must stay in place until drain() or forget().
  void hold_entries(std::span<const std::uint32_t> entries);
  /// Call before `memory` is overwritten: drops all entries as old as those held there, and older.
  void forget(std::span<const std::uint32_t> memory);
  /// Drops older entries without decoding them, so that the newest `branches` branches and somewhat
  /// more remain. Returns the number of branches dropped.
  std::uint64_t keep_newest(std::uint64_t branches);
  /// Drops everything without decoding. The next drain() begins with a gap.
  void clear();
  /// Keeps the newest `entries` entries in memory of its own, sized to fit, so that the memory of
  /// held entries may be released. Returns the number of branches dropped.
  std::uint64_t own_newest(std::uint64_t entries);
  void add_arrival(TraceeAddr at);
  /// Appends a record. A sentinel with a distance of 0 takes its place among the events; others
  /// wait for the entry that they follow.
  void add_record(const Record& record);
  /// The thread records values in a ring, which is borrowed (ValueStream).
  void use_values(std::span<const std::uint64_t> ring) {
    values_ = std::make_unique<ValueStream>(ring);
  }
  /// Null unless the thread records values.
  [[nodiscard]] const ValueStream* values() const { return values_.get(); }
  /// Call before the thread runs translated code. Values are decoded only where it does not.
  void begin_values() {
    if (values_) values_->begin_writing();
  }
  /// Call where the thread leaves translated code, after its entries have been added. `next` is the
  /// index of its next value; the newest `left` values belong to no entry.
  void end_values(std::uint64_t next, std::uint64_t left);
  /// Adds facts at the present place: ValueFact::record has no meaning.
  void add_facts(std::span<const ValueFact> facts);
  /// Adds at the present place that the thread executed a superblock's code; see
  /// ExecutedCode::execute().
  void add_executed(std::uint32_t block, std::size_t passed, std::optional<TraceeAddr> end);
  /// Adds an instruction that was stepped; see ExecutedCode::step().
  void add_stepped(TraceeAddr pc, const ExecutedInsn& insn);
  /// Decodes everything, passes it to `consumer` and drops it.
  void drain(TraceConsumer& consumer);

  [[nodiscard]] bool empty() const { return chunks_.empty(); }
  /// Returns the approximate memory of what is kept, in bytes.
  [[nodiscard]] std::uint64_t bytes() const { return held_ * sizeof(std::uint32_t); }
  /// Returns the number of entries and events that wait for decoding.
  [[nodiscard]] std::uint64_t waiting() const { return held_; }
  [[nodiscard]] std::uint64_t numbers_seen() const { return entries_seen_; }
  [[nodiscard]] std::uint64_t numbers_dropped() const { return entries_dropped_; }

 private:
  struct Executed {
    std::uint32_t block = 0;
    std::size_t passed = 0;
    std::optional<TraceeAddr> end;
  };
  struct Event {
    std::size_t before = 0;  ///< Number of entries of its chunk that precede it.
    std::optional<Record> record = {};
    TraceeAddr arrival = {};
    std::vector<ValueFact> facts = {};      ///< If not empty, the event is nothing else.
    std::optional<Executed> executed = {};  ///< If set, the event is nothing else.
    /// If set, the event is this instruction, at `arrival`.
    std::optional<ExecutedInsn> stepped = {};
  };
  struct Chunk {
    std::vector<std::uint32_t> copied;
    std::span<const std::uint32_t> held;  ///< If not empty, nothing is copied.
    std::vector<Event> events;

    [[nodiscard]] std::span<const std::uint32_t> entries() const {
      return held.empty() ? std::span<const std::uint32_t>{copied} : held;
    }
    [[nodiscard]] std::uint64_t size() const { return entries().size() + events.size(); }
  };
  /// Returns a chunk for events.
  Chunk& open_chunk();
  /// Returns a chunk with room for copies; `coming` entries are about to be added.
  Chunk& open_copied(std::size_t coming);
  /// Makes room for `coming` more entries, or for those that fit a chunk.
  void give_room(std::vector<std::uint32_t>& entries, std::size_t coming) const;
  Chunk& new_chunk();
  /// Drops old chunks beyond the limit. Returns the memory of one for reuse.
  std::optional<Chunk> drop_old();
  Chunk drop_oldest();
  /// Drops the first entries of the oldest chunk.
  void drop_numbers(std::size_t count);
  void count_dropped(std::uint64_t entries);
  void keep_memory(const Event& event);
  void align_values();
  /// Hands on records and facts, and empties both.
  void hand_on(TraceConsumer& consumer, std::vector<Record>& out);
  void decode_event(const Event& event, TraceConsumer& consumer, std::vector<Record>& out);
  void decode(const Chunk& chunk, TraceConsumer& consumer, std::vector<Record>& out);
  void tell(const Record& pin, TraceConsumer& consumer, std::vector<Record>& before);
  void decode_plain(std::span<const std::uint32_t> entries, TraceConsumer& consumer,
                    std::vector<Record>& out);
  void decode_entries(std::span<const std::uint32_t> entries, TraceConsumer& consumer,
                      std::vector<Record>& out);

  std::shared_ptr<const ExitTable> exits_;
  FreshMemory fresh_memory_;
  CacheLogDecoder decoder_;
  std::deque<Chunk> chunks_;
  std::uint64_t limit_entries_;
  std::uint64_t held_ = 0;
  std::uint64_t entries_seen_ = 0;
  std::uint64_t entries_dropped_ = 0;
  std::uint64_t entries_done_ = 0;  ///< Entries decoded or dropped.
  /// Sentinels by the number of entries that precede them.
  std::multimap<std::uint64_t, Record> pins_;
  bool dropped_ = false;
  std::unique_ptr<ValueStream> values_;  ///< Null: no values are recorded.
  std::deque<ValueStream::Stretch> stretches_;
  std::vector<ValueFact> dropped_memory_;  ///< Facts of memory that were dropped.
};

}  // namespace backtrail::decoder
