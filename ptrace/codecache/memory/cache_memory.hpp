#pragma once
/// @file
/// The memory that translated code, its table and the threads' logs live in: one memfd, mapped in
/// the program and in the server.
///
///     memfd:   | table | code | thread 0: page, ring, guard | thread 1: ... |
///
/// In the program, table and code are one mapping that may be executed, near the executable; the
/// table is mapped below 2 GiB too, and read there; the threads anywhere. So table and the code of
/// a small program share a big page. Further memfds hold further threads. No page is writable and
/// executable, no forked child inherits them, and no core file holds them.

#include <array>
#include <atomic>
#include <bitset>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "arch/base/address.hpp"
#include "arch/base/result.hpp"
#include "arch/x86/translate/layout.hpp"
#include "ptrace/codecache/memory/code_memory.hpp"
#include "ptrace/codecache/memory/entry_table.hpp"
#include "ptrace/os/procfs.hpp"
#include "ptrace/os/unique_fd.hpp"

namespace backtrail::tracee {
class CallBatch;
class Process;
class RemoteCalls;
class Thread;
}  // namespace backtrail::tracee

namespace backtrail::tracee::cache {

inline constexpr std::uint64_t kRingBytes = 1ULL << 20;
inline constexpr std::uint64_t kGuardBytes = 4096;
inline constexpr std::uint64_t kThreadBytes =
    arch::x86::translate::kThreadPageBytes + kRingBytes + kGuardBytes;
/// Memory is mapped for so many at a time.
inline constexpr std::size_t kThreadsAtOnce = 256;
inline constexpr std::uint64_t kThreadsBytes = kThreadBytes * kThreadsAtOnce;
inline constexpr std::size_t kMaxThreads = 32 * kThreadsAtOnce;

/// Threads that log much get areas, from the end of the first memfd downwards, where the parts of
/// threads that do not exist would be. A segment is one log with one guard. It begins at a big page
/// and fills at least one.
inline constexpr std::uint64_t kSegmentSpan = 8ULL << 20;
inline constexpr std::uint64_t kSegmentBytes = kSegmentSpan - kGuardBytes;
inline constexpr std::size_t kAreaSegments = 10;
inline constexpr std::uint64_t kAreaBytes = kAreaSegments * kSegmentSpan;
inline constexpr std::size_t kMostAreas = 3;
static_assert(kMostAreas * kAreaBytes < kThreadsBytes);

/// No exit has this number: an entry that nothing has been written to since it was made blank.
inline constexpr std::uint32_t kBlankEntry = ~0U;

/// Where a log is written, until a guard page.
struct LogRange {
  std::uint8_t* host = nullptr;  ///< As the server sees it.
  TraceeAddr begin;
  TraceeAddr end;

  [[nodiscard]] std::uint64_t bytes() const { return end - begin; }
};

/// A thread's part as the server sees it.
class ThreadMemory {
 public:
  /// Its log is the ring in it.
  ThreadMemory(std::uint8_t* host, TraceeAddr base)
      : host_{host},
        base_{base},
        log_{host + arch::x86::translate::kThreadPageBytes,
             base + arch::x86::translate::kThreadPageBytes,
             base + arch::x86::translate::kThreadPageBytes + kRingBytes} {}

  [[nodiscard]] std::uint64_t read(arch::x86::translate::Slot slot) const;
  void write(arch::x86::translate::Slot slot, std::uint64_t value);
  void write32(arch::x86::translate::Slot slot, std::uint32_t value);
  /// The thread, which runs, has asked, and waits for answer() or refuse() from now on.
  bool take_request();
  void answer(TraceeAddr next);
  void refuse();
  /// The thread is stopped: who asked is not waiting any more.
  void drop_request();
  /// The gs base.
  [[nodiscard]] TraceeAddr page() const { return base_; }
  /// What has not been taken of the log begins here, and where it ends at the latest.
  [[nodiscard]] TraceeAddr log_begin() const { return log_.begin; }
  [[nodiscard]] TraceeAddr log_end() const { return log_.end; }
  [[nodiscard]] const LogRange& log() const { return log_; }
  void set_log(const LogRange& log) { log_ = log; }
  /// Memory in the page, from an offset on, as the server sees it.
  [[nodiscard]] std::uint8_t* scratch(std::uint64_t offset) const { return host_ + offset; }
  /// Log entries up to a log pointer; empty for one that is not in the log.
  [[nodiscard]] std::span<const std::uint32_t> entries(TraceeAddr log) const;
  /// Blanks every entry. A log is written from its beginning on: behind the first one that is blank
  /// all are.
  void blank_log() const;
  /// Entries up to the first blank one, of which so many are known to be none. The thread may run:
  /// it writes each by one store, and processors of this kind show stores in their order.
  [[nodiscard]] std::span<const std::uint32_t> written(std::size_t known) const;

 private:
  void set_request(arch::x86::translate::Request state);

  std::uint8_t* host_;
  TraceeAddr base_;
  LogRange log_;
};

class CacheMemory : public CodeMemory {
 public:
  /// Of the program's address space, at first.
  static constexpr std::uint64_t kMappedBytes = kSharedBytes + kTableSpan + kThreadsBytes;

  /// Sets everything up, with the first thread's part ready for this thread. It must be in a stop
  /// outside system calls. Errors: kTraceeGone, kUnsupported; errnos of the calls made.
  static Result<std::unique_ptr<CacheMemory>> create(Thread& thread);
  ~CacheMemory() override;
  CacheMemory(const CacheMemory&) = delete;
  CacheMemory& operator=(const CacheMemory&) = delete;
  /// Takes the mappings out of the program, once.
  Result<void> remove(Thread& thread);
  [[nodiscard]] bool removed() const { return removed_; }
  /// It is one of ours.
  [[nodiscard]] bool has_mapped(TraceeAddr address) const;

  [[nodiscard]] TraceeAddr code() const override { return code_; }
  /// Where the mapping that the code is in begins.
  [[nodiscard]] TraceeAddr mapping() const { return code_ - kTableBytes; }
  [[nodiscard]] TraceeAddr table() const override { return table_; }
  [[nodiscard]] std::span<std::uint8_t> host_code() const override {
    return {host_ + kTableBytes, kCodeBytes};
  }
  void fill_code(std::span<const std::uint8_t> code) override;
  void settle_code(std::uint64_t end) override;
  void fill_table(TraceeAddr target) override;
  [[nodiscard]] EntryTable& entries() override { return entries_; }

  /// What is behind the table: zero at first.
  [[nodiscard]] std::span<std::uint8_t> policy() const {
    return {host_ + kFirstTableBytes, arch::x86::translate::kPolicyBytes};
  }

  /// In a thread's page, behind the slots: for the arguments of calls made on our behalf. What
  /// create() leaves in that of the first thread are the actions of SIGSEGV and of SIGTRAP.
  static constexpr std::uint64_t kScratchOffset = 2048;
  /// The limit that a call of the program's sets.
  static constexpr std::uint64_t kLimitOffset = 3072;
  /// `index` has been prepared.
  [[nodiscard]] ThreadMemory thread(std::size_t index) const;
  /// Sees that the part may be used: there is a guard page behind its ring. Errors as create().
  Result<void> prepare_thread(Thread& thread, std::size_t index);
  /// From now on thread() tells of this log for that part; nothing: of the ring in it.
  void set_log(std::size_t index, const std::optional<LogRange>& log);

  /// Makes a further area ready; its number. Errors: kBusy (there is no room for another), those of
  /// create().
  Result<std::size_t> add_area(Thread& thread);
  [[nodiscard]] std::size_t areas() const { return areas_; }
  /// The first part that areas have taken of the first memfd.
  [[nodiscard]] std::size_t first_area_part() const { return first_part_of(areas_); }
  [[nodiscard]] LogRange segment(std::size_t area, std::size_t index) const;
  /// Its memory is there from now on, in one go rather than by a page fault every 4 KiB. Where the
  /// kernel does not do that nothing happens.
  void commit_segment(Thread& thread, std::size_t area, std::size_t index);
  /// What of that takes longest and needs no thread to stop.
  void prepare_segment(std::size_t area, std::size_t index);

 private:
  /// The parts of kThreadsAtOnce threads.
  struct ThreadChunk {
    std::uint8_t* host = nullptr;
    TraceeAddr base;
  };
  CacheMemory() = default;
  static constexpr std::size_t first_part_of(std::size_t areas) {
    return (kThreadsBytes - areas * kAreaBytes) / kThreadBytes;
  }
  Result<void> map(Thread& thread);
  Result<void> add_chunk(Thread& thread);
  Result<void> map_chunk(RemoteCalls& remote, std::uint64_t fd);
  [[nodiscard]] ThreadMemory part(std::size_t index) const;
  /// Has the thread make the calls.
  Result<void> run(Thread& thread, CallBatch& batch);
  Result<void> map_here(int fd);
  Result<void> map_code(RemoteCalls& remote, std::uint64_t fd, const std::vector<MapEntry>& maps,
                        const std::string& exe);
  Result<void> map_rest(RemoteCalls& remote, std::uint64_t fd, const std::vector<MapEntry>& maps);

  /// A big page in place of the next ones that are none; false where the kernel does not give it.
  bool settle_next();
  /// Likewise at this offset.
  bool make_big_page(std::uint64_t begin);

  std::uint8_t* host_ = nullptr;
  EntryTable entries_;
  std::uint64_t settled_ = 0;  ///< Of table and code.
  TraceeAddr code_;
  TraceeAddr table_;
  bool removed_ = false;
  std::vector<ThreadChunk> chunks_;
  std::size_t guarded_ = 1;  ///< So many parts have their guard page.
  std::size_t areas_ = 0;
  std::bitset<kMostAreas * kAreaSegments> prepared_;
  std::bitset<kMostAreas * kAreaSegments> committed_;
  std::map<std::size_t, LogRange> logs_;  ///< Those that are not the ring of the part.
};

}  // namespace backtrail::tracee::cache
