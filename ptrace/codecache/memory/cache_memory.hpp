// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The memory of translated code, its look-up table and the threads' logs: one memfd, mapped in the
/// program and in the server.
///
///     memfd:   | table | code | thread 0: page, log, guard, values | thread 1: ... |
///
/// In the program, table and code are one executable mapping near the executable. The table is also
/// mapped below 2 GiB, where it is read. Thread parts are mapped anywhere. So the table and the
/// code of a small program share a large page. Further memfds hold further thread parts. No page is
/// both writable and executable, forked children inherit none, and no core file contains any.

#include <bitset>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "arch/base/address.hpp"
#include "arch/base/result.hpp"
#include "arch/cpu/translator.hpp"
#include "ptrace/codecache/memory/code_memory.hpp"
#include "ptrace/codecache/memory/entry_table.hpp"
#include "ptrace/codecache/memory/memory_file.hpp"
#include "ptrace/codecache/memory/spare_memory.hpp"
#include "ptrace/codecache/memory/thread_memory.hpp"
#include "ptrace/os/procfs.hpp"
#include "ptrace/os/unique_fd.hpp"

namespace backtrail::tracee {
class CallBatch;
class Process;
class RemoteCalls;
class Thread;
}  // namespace backtrail::tracee

namespace backtrail::tracee::cache {

class BorrowedName;

inline constexpr std::size_t kMostChunks = 32;
inline constexpr std::size_t kMaxThreads = kMostChunks * kThreadsAtOnce;

/// Addresses in the program.
struct MemoryPlaces {
  TraceeAddr mapping;  ///< The mapping of table and code.
  TraceeAddr table;
  TraceeAddr threads;  ///< The first chunk.
};

class CacheMemory : public CodeMemory {
 public:
  /// Size of the mappings in the program's address space at first.
  static constexpr std::uint64_t kMappedBytes = kSharedBytes + kTableSpan + kThreadsBytes;

  /// Maps everything and prepares the first thread part for `thread`, which must be in a stop
  /// outside of system calls. Errors: kTraceeGone, kUnsupported; the errnos of the calls.
  /// @param records_values  Thread parts have room for values.
  /// @param spare           Memory is taken from there and given back; may be null.
  /// @param free_places     Where the process has nothing; null: that is looked up.
  static Result<std::unique_ptr<CacheMemory>> create(Thread& thread, bool records_values,
                                                     std::shared_ptr<SpareMemory> spare,
                                                     const MemoryPlaces* free_places = nullptr);
  ~CacheMemory() override;
  CacheMemory(const CacheMemory&) = delete;
  CacheMemory& operator=(const CacheMemory&) = delete;
  /// Unmaps everything from the program, once.
  Result<void> remove(Thread& thread);
  [[nodiscard]] bool removed() const { return removed_; }
  /// Returns all memory that the recorder has mapped, as [first, second).
  [[nodiscard]] std::vector<std::pair<TraceeAddr, TraceeAddr>> ranges() const;

  /// Returns true if a part of the memory is that of the memfd with this inode.
  [[nodiscard]] bool is_in_file(std::uint64_t inode) const;

  [[nodiscard]] TraceeAddr code() const override { return code_; }
  /// Returns the mappings of the process that create() has found, and that of the code; at most
  /// once. Empty if they were not looked up.
  [[nodiscard]] std::optional<std::vector<MapEntry>> take_first_maps() {
    return std::exchange(first_maps_, std::nullopt);
  }
  [[nodiscard]] MemoryPlaces places() const { return {mapping(), table_, chunks_.front().base}; }
  /// Where the mapping that the code is in begins.
  [[nodiscard]] TraceeAddr mapping() const { return code_ - kTableBytes; }
  /// Returns true if the mapping overlaps [begin, end).
  [[nodiscard]] bool overlaps_code(TraceeAddr begin, TraceeAddr end) const {
    return begin < mapping() + kSharedBytes && mapping() < end;
  }
  [[nodiscard]] TraceeAddr table() const override { return table_; }
  [[nodiscard]] std::span<std::uint8_t> host_code() const override {
    return {host() + kTableBytes, kCodeBytes};
  }
  void fill_code(std::span<const std::uint8_t> code) override;
  void leave_code(LeftCode left) override;
  void settle_code(std::uint64_t end) override;
  void settle_first() override;
  void fill_table(TraceeAddr target) override;
  [[nodiscard]] EntryTable& entries() override { return entries_; }

  /// The policy, which follows the table; zero at first.
  [[nodiscard]] std::span<std::uint8_t> policy() const { return file_->policy(); }

  /// Offset in a thread page, after the slots, for arguments of remote system calls. create()
  /// leaves the actions of SIGSEGV and SIGTRAP there, in the first thread's page.
  static constexpr std::uint64_t kScratchOffset = 2048;
  /// Offset of the limit that a changed call of the program sets.
  static constexpr std::uint64_t kLimitOffset = 3072;
  /// Returns a thread part, which must have been prepared.
  [[nodiscard]] ThreadMemory thread(std::size_t index) const;
  /// Returns how many thread parts a chunk has.
  [[nodiscard]] std::size_t parts_at_once() const { return kThreadsBytes / part_bytes_; }
  /// Prepares a thread part for use: protects the guard page after its log, and lets the ring of
  /// values go on with its beginning. Errors as create().
  Result<void> prepare_thread(Thread& thread, std::size_t index);
  /// Makes thread() use this log for the part; nullopt: the log in the part.
  void set_log(std::size_t index, const std::optional<LogRange>& log);

  /// Prepares a further area; returns its number. Errors: kBusy (no room for another), those of
  /// create().
  Result<std::size_t> add_area(Thread& thread);
  [[nodiscard]] std::size_t areas() const { return areas_; }
  /// Index of the first thread part of the first memfd that areas have taken, of any program.
  [[nodiscard]] std::size_t first_area_part() const { return first_part_of(file_->areas_ever()); }
  [[nodiscard]] LogRange segment(std::size_t area, std::size_t index) const;
  /// Populates a segment with few calls instead of a page fault per 4 KiB. Does nothing if the
  /// kernel cannot.
  void commit_segment(Thread& thread, std::size_t area, std::size_t index);
  /// Does a short part of commit_segment(), for which no thread needs to stop. Returns false if
  /// nothing is left to do.
  bool prepare_segment(std::size_t area, std::size_t index);

 private:
  /// kThreadsAtOnce thread parts in one mapping.
  struct ThreadChunk {
    std::uint8_t* host = nullptr;
    TraceeAddr base;
    std::uint64_t inode = 0;
  };
  CacheMemory(std::uint64_t part_bytes, std::shared_ptr<SpareMemory> spare)
      : part_bytes_{part_bytes}, spare_{std::move(spare)} {}
  [[nodiscard]] std::uint8_t* host() const { return file_->host(); }
  [[nodiscard]] bool has_values() const { return part_bytes_ > kThreadBytes; }
  [[nodiscard]] std::size_t first_part_of(std::size_t areas) const {
    return (kThreadsBytes - areas * kAreaBytes) / part_bytes_;
  }
  Result<void> map(Thread& thread, const MemoryPlaces* free_places);
  Result<void> add_chunk(Thread& thread);
  Result<void> map_chunk(RemoteCalls& remote, std::uint64_t fd);
  [[nodiscard]] ThreadMemory part(std::size_t index) const;
  /// Adds the calls that prepare a part.
  void prepare_part(CallBatch& batch, std::size_t index) const;
  /// Makes the thread run the batch.
  Result<void> run(Thread& thread, CallBatch& batch);
  /// Gets the file, new or spare; returns the program's descriptor.
  Result<std::uint64_t> get_file(Process& process, RemoteCalls& remote, const BorrowedName& name);
  std::unique_ptr<MemoryFile> spare_or_new();
  [[nodiscard]] bool may_use_spare(const Process& process) const;
  /// Maps the code at the first of the places that is free.
  Result<void> map_code(RemoteCalls& remote, std::uint64_t fd,
                        const std::vector<std::uint64_t>& places);
  /// Finds a place for the table, and for the first chunk. Returns false if the kernel had to
  /// choose the latter, which is mapped then.
  Result<bool> place_rest(RemoteCalls& remote, std::uint64_t fd, const std::vector<MapEntry>& maps);
  Result<void> map_rest(RemoteCalls& remote, std::uint64_t fd, bool maps_threads);
  void add_first_chunk(TraceeAddr base);
  void note_first_maps(std::vector<MapEntry> maps);

  std::uint64_t part_bytes_;
  std::shared_ptr<SpareMemory> spare_;
  std::string program_;
  std::unique_ptr<MemoryFile> file_;  ///< The first memfd.
  std::optional<std::vector<MapEntry>> first_maps_;
  LeftCode left_;                ///< As the program before left it, until fill_code().
  std::uint64_t populated_ = 0;  ///< Code offset up to which settle_code() has populated pages.
  EntryTable entries_;
  TraceeAddr code_;
  TraceeAddr table_;
  bool removed_ = false;
  std::vector<ThreadChunk> chunks_;
  std::size_t guarded_ = 1;  ///< Number of parts that have a guard page.
  std::size_t areas_ = 0;
  std::bitset<kMostAreas * kAreaSegments> committed_;
  std::map<std::size_t, LogRange> logs_;  ///< Logs that are not in their parts.
};

}  // namespace backtrail::tracee::cache
