// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The traces of a core file by thread; damaged ones as far as they are readable.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "decoder/corefile/code_names.hpp"
#include "decoder/corefile/core_file.hpp"
#include "decoder/corefile/thread_times.hpp"
#include "decoder/corefile/trace_blocks.hpp"
#include "decoder/trace/record.hpp"
#include "decoder/trace/value_fact.hpp"

namespace backtrail::decoder {

class TraceArchive {
 public:
  /// Borrows `core`'s bytes.
  explicit TraceArchive(const CoreFile& core);

  struct Thread {
    /// Sorted by the number of their first record, without overlaps.
    std::vector<TraceBlock> blocks;
    std::uint64_t records = 0;   ///< Records in `blocks`.
    std::uint64_t lost = 0;      ///< Branches older than those that were kept.
    bool lost_is_exact = false;  ///< False if `lost` is a lower bound.
    std::uint64_t promised = 0;  ///< Records that the file should have.
    std::uint64_t end = 0;       ///< Number after the newest record, which may be missing.
    std::string name;
    std::optional<TraceBlock> times;
    std::vector<TraceBlock> facts;  ///< Sorted by the number of the first fact's record.
    TraceeAddr pc;                  ///< The thread's pc at the end; 0 if it had ended.
  };
  /// All threads that have records or are in the index, by thread id.
  [[nodiscard]] const std::map<std::uint32_t, Thread>& threads() const { return threads_; }
  [[nodiscard]] const Thread* find(std::uint32_t tid) const;
  /// Returns the thread's times; nullopt if none were recorded. Places are record numbers of the
  /// whole trace: at least `lost` records come before the first block.
  [[nodiscard]] std::optional<TraceTimes> times(std::uint32_t tid) const;
  /// Returns the values that were recorded of a thread, oldest first, by the numbers of their
  /// records in the whole trace. Damaged blocks are left out.
  [[nodiscard]] std::vector<ValueFact> facts(std::uint32_t tid) const;
  /// Returns those of them that are of code or of memory.
  [[nodiscard]] std::vector<ValueFact> code_facts(std::uint32_t tid) const;
  /// Returns names of code that the program generated at run time, sorted by address.
  [[nodiscard]] std::vector<CodeName> names() const;
  /// Bytes of the segment that belong to no block, because of damage.
  [[nodiscard]] std::uint64_t unreadable_bytes() const { return unreadable_bytes_; }

  /// Returns the last `most` records of a thread, rounded up to whole blocks, oldest first. The
  /// first record is a gap with reason kStart. Missing and damaged blocks appear as gaps with
  /// reason kOverflow; if the newest are missing, the last record is a gap.
  [[nodiscard]] std::vector<Record> load(std::uint32_t tid, std::uint64_t most = ~0ULL) const;
  /// Passes what load() returns to `take` in pieces, oldest first, so that long traces need little
  /// memory.
  void visit(std::uint32_t tid, std::uint64_t most,
             const std::function<void(std::span<const Record>)>& take) const;
  /// Like visit(), for records before number `before`. Records are numbered from the thread's first
  /// one ever: `end` - 1 is the number of a piece's last record. A gap for missing blocks has no
  /// number.
  void visit_numbered(std::uint32_t tid, std::uint64_t most,
                      const std::function<void(std::span<const Record>, std::uint64_t end)>& take,
                      std::uint64_t before = ~0ULL) const;

 private:
  [[nodiscard]] std::vector<ValueFact> facts_from(std::uint32_t tid,
                                                  std::uint32_t oldest_version) const;

  std::map<std::uint32_t, Thread> threads_;
  std::vector<TraceBlock> names_;
  std::uint64_t unreadable_bytes_ = 0;
};

}  // namespace backtrail::decoder
