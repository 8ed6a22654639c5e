// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The log that one thread's translated code writes: taken at stops, when it is full and, if every
/// record is kept, while the thread runs.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "arch/base/address.hpp"
#include "decoder/cachelog/cache_log.hpp"
#include "ptrace/codecache/memory/cache_memory.hpp"
#include "ptrace/codecache/recorder/native_state.hpp"
#include "ptrace/codecache/space/busy_log.hpp"

namespace backtrail::tracee {
struct SourceStatistics;
class Thread;
}  // namespace backtrail::tracee

namespace backtrail::tracee::cache {

class CacheSpace;

/// Closed at first, and again after every close(). What is taken stays undecoded until drain(), in
/// one sequence with the records that are added; older entries than the history needs are dropped.
class ThreadLog {
 public:
  struct Options {
    std::uint64_t history_bytes = 0;  ///< At least so much of the newest entries is kept.
    bool keeps_all = false;  ///< Undecoded entries are never dropped; the thread waits instead.
    SourceStatistics* statistics = nullptr;  ///< Times are added here; null: nothing is counted.
  };
  /// `sink` gets the records.
  ThreadLog(decoder::TraceConsumer& sink, const Options& options)
      : sink_{sink}, options_{options} {}

  /// Begins the log in the thread's part of the memory. Both arguments must outlive close().
  void open(CacheSpace& space, std::size_t slot, ThreadMemory& memory);
  /// Drops what was not handed on.
  void close();
  [[nodiscard]] bool keeps_all() const { return options_.keeps_all; }
  [[nodiscard]] bool is_open() const { return log_ != nullptr; }

  // The following need an open log.

  /// Takes the entries up to the log pointer `log` of the stopped thread. The log begins again: at
  /// ThreadMemory::log_begin().
  void take(TraceeAddr log);
  /// Call after take() of a full log, before the thread runs on: moves a thread that logs much to a
  /// busy log, which needs no copies. The thread must be in a stop as RemoteCalls::begin()
  /// requires.
  void renew(Thread& thread);
  /// Returns true if the thread writes a busy log: full logs stay where they are for a while.
  [[nodiscard]] bool is_busy() const { return busy_log_ != nullptr; }
  /// Populates a part of the memory that a busy log comes to next. Call while the thread runs.
  /// Returns false if nothing is left to do.
  [[nodiscard]] bool prepare_next() const { return busy_log_ && busy_log_->prepare_next(); }
  /// Returns how many new entries of the running thread's log are final; 0 unless every record is
  /// kept.
  [[nodiscard]] std::size_t new_entries() const;
  /// Takes the first `count` of them.
  void take_written(std::size_t count);

  /// Adds a record after what was taken.
  void add_record(const decoder::Record& record);
  /// Adds that the thread is at `at`, the target of an indirect branch that was taken last.
  void add_arrival(TraceeAddr at) { log_->add_arrival(at); }
  /// Adds what the thread has done of the superblock that it is in: branches, recorded values.
  void add_passed(const UnfinishedBlock& block);
  /// Call before the thread runs translated code: it may overwrite the values in its ring.
  void begin_values() { log_->begin_values(); }
  /// Call when the thread leaves a superblock that has stored this many values without counting
  /// them.
  void count_values(std::size_t values);
  /// Call after take() when the thread leaves translated code. The newest `left` values belong to a
  /// superblock that was not left by an exit.
  void end_values(std::size_t left);
  /// Adds an instruction that was stepped.
  void add_stepped(TraceeAddr pc, const decoder::ExecutedInsn& insn) {
    log_->add_stepped(pc, insn);
  }
  /// Adds recorded values at the present place.
  void add_facts(std::span<const decoder::ValueFact> facts) { log_->add_facts(facts); }

  // These have no effect while the log is closed.

  /// Decodes and hands on all that was taken.
  void drain();
  /// Returns true if taking and adding may drain() by themselves. Records that are older than the
  /// log must have been handed on.
  [[nodiscard]] bool may_drain() const { return options_.keeps_all || streams_; }
  std::uint64_t keep_newest(std::uint64_t branches);
  /// Drops what was taken, undecoded.
  void clear();
  /// Returns what was taken, which may still lie in the thread's memory. Null if closed, or if
  /// every record is kept.
  std::unique_ptr<decoder::CacheLog> release();

  /// Keeps every record from now on, and takes them while the thread runs.
  /// @param is_stopped the thread is not in translated code, so that its log can begin again
  void stream(bool is_stopped);
  void end_stream() { streams_ = false; }
  [[nodiscard]] bool streams() const { return streams_; }

  /// Number of entries of the present log that were taken already.
  [[nodiscard]] std::size_t taken() const { return taken_; }
  // Totals over all logs. All but the entries are counted for Options::statistics only.
  [[nodiscard]] std::uint64_t entries_seen() const;
  [[nodiscard]] std::uint64_t full_logs() const { return full_logs_; }
  [[nodiscard]] const decoder::LogCounts& counts() const { return counts_; }

 private:
  /// Makes a log that keeps at least so much.
  [[nodiscard]] std::unique_ptr<decoder::CacheLog> make_log(std::uint64_t history_bytes) const;
  void take_entries(std::span<const std::uint32_t> entries);
  /// Begins a log. It must be empty, and the thread must not be running.
  void begin();
  void use(const LogRange& log);
  void use_busy_log(Thread& thread);
  /// If every record must be kept: hands on the taken entries once there are many.
  void bound_undecoded();

  decoder::TraceConsumer& sink_;
  Options options_;
  CacheSpace* space_ = nullptr;
  ThreadMemory* memory_ = nullptr;
  std::size_t slot_ = 0;
  std::unique_ptr<BusyLog> busy_log_;  ///< Owns memory that log_ may refer to.
  std::unique_ptr<decoder::CacheLog> log_;
  bool streams_ = false;   ///< Every record is kept.
  bool is_blank_ = false;  ///< The log was blanked, so unwritten entries can be told.
  std::size_t taken_ = 0;
  std::uint64_t full_logs_ = 0;
  std::uint64_t seen_before_ = 0;  ///< Entries of logs that were closed or released.
  decoder::LogCounts counts_;
};

}  // namespace backtrail::tracee::cache
