#pragma once
/// @file
/// The traces of a core file, thread by thread, damaged ones as far as they go.

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

namespace backtrail::decoder {

class TraceArchive {
 public:
  /// `core`'s bytes are borrowed.
  explicit TraceArchive(const CoreFile& core);

  struct Thread {
    std::vector<TraceBlock> blocks;  ///< By the number of their first record; none twice.
    std::uint64_t records = 0;
    std::uint64_t lost = 0;  ///< Older than what was kept.
    std::string name;
    std::optional<TraceBlock> times;
  };
  /// By thread id: every thread that has records or is in the index.
  [[nodiscard]] const std::map<std::uint32_t, Thread>& threads() const { return threads_; }
  [[nodiscard]] const Thread* find(std::uint32_t tid) const;
  /// When it was where, if that was recorded. The numbers are those of blocks: `lost` records and
  /// perhaps more stand before the first one.
  [[nodiscard]] std::optional<TraceTimes> times(std::uint32_t tid) const;
  /// Of code that the program made while it ran, by address, as far as it told.
  [[nodiscard]] std::vector<CodeName> names() const;
  /// Bytes of the segment that belong to no block: damage.
  [[nodiscard]] std::uint64_t unreadable_bytes() const { return unreadable_bytes_; }

  /// The last `most` records of a thread or a few more (whole blocks), oldest first. The first one
  /// is a gap of reason kStart; blocks that are missing or damaged are gaps of reason kOverflow.
  [[nodiscard]] std::vector<Record> load(std::uint32_t tid, std::uint64_t most = ~0ULL) const;
  /// The same in pieces, oldest first, so that long traces need no memory.
  void visit(std::uint32_t tid, std::uint64_t most,
             const std::function<void(std::span<const Record>)>& take) const;
  /// As visit(), of the records that come before number `before`. Records are numbered from the
  /// thread's first one ever: `end` - 1 is the number of a piece's last record. The gap that stands
  /// for missing blocks has no number.
  void visit_numbered(std::uint32_t tid, std::uint64_t most,
                      const std::function<void(std::span<const Record>, std::uint64_t end)>& take,
                      std::uint64_t before = ~0ULL) const;

 private:
  std::map<std::uint32_t, Thread> threads_;
  std::vector<TraceBlock> names_;
  std::uint64_t unreadable_bytes_ = 0;
};

}  // namespace backtrail::decoder
