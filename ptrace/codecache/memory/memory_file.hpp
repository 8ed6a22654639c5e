// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The memfd that a program and the server map for translated code and logs, as the server sees it.
/// Its pages stay when the program ends, so that another one may use it.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "arch/base/result.hpp"
#include "arch/cpu/translator.hpp"
#include "ptrace/codecache/memory/code_memory.hpp"
#include "ptrace/codecache/memory/left_code.hpp"
#include "ptrace/os/unique_fd.hpp"

namespace backtrail::tracee::cache {

inline constexpr std::uint64_t kBigPageBytes = 2ULL << 20;
inline constexpr std::uint64_t kLogBytes = 1ULL << 20;
inline constexpr std::uint64_t kGuardBytes = 4096;
inline constexpr std::uint64_t kThreadBytes =
    arch::cpu::translate::kThreadPageBytes + kLogBytes + kGuardBytes;
/// Where values are recorded, a thread part goes on with their ring.
inline constexpr std::uint64_t kValuesBytes =
    arch::cpu::translate::kRingValues * arch::cpu::translate::kValueBytes;
inline constexpr std::uint64_t kRecordingThreadBytes =
    kThreadBytes + kValuesBytes + arch::cpu::translate::kRepeatedBytes;
static_assert(arch::cpu::translate::kValuesOffset == kThreadBytes);
/// Most thread parts that are mapped at once: a chunk.
inline constexpr std::size_t kThreadsAtOnce = 256;
inline constexpr std::uint64_t kThreadsBytes = kThreadBytes * kThreadsAtOnce;

/// Threads that log much get areas, from the end of the first memfd downward, in place of the parts
/// of threads that do not exist. A segment is one log with one guard page. It begins at a large
/// page and fills at least one.
inline constexpr std::uint64_t kSegmentSpan = 8ULL << 20;
inline constexpr std::uint64_t kSegmentBytes = kSegmentSpan - kGuardBytes;
inline constexpr std::size_t kAreaSegments = 10;
inline constexpr std::uint64_t kAreaBytes = kAreaSegments * kSegmentSpan;
inline constexpr std::size_t kMostAreas = 3;
static_assert(kMostAreas * kAreaBytes < kThreadsBytes);

class MemoryFile {
 public:
  // Offsets: table and code, thread parts, rest of the table.
  static constexpr std::uint64_t kThreadsAt = kSharedBytes;
  static constexpr std::uint64_t kMoreTableAt = kThreadsAt + kThreadsBytes;
  static constexpr std::uint64_t kBytes = kMoreTableAt + kMoreTableBytes;

  /// Makes a file that programs can open: ProgramFile::open_in(). Errors: the errnos of the calls.
  static Result<std::unique_ptr<MemoryFile>> make();
  /// Maps a file of kBytes. Errors: the errno of mmap(2).
  static Result<std::unique_ptr<MemoryFile>> map(UniqueFd file);
  ~MemoryFile();
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  [[nodiscard]] int fd() const { return file_.get(); }
  /// Closes the descriptor of memory that no other program will use. It stays mapped.
  void close() { file_.reset(); }
  [[nodiscard]] bool is_open() const { return file_.valid(); }
  /// inode_of() the file.
  [[nodiscard]] std::uint64_t inode() const { return inode_; }
  /// The server's mapping, which begins at a large page.
  [[nodiscard]] std::uint8_t* host() const { return host_; }
  /// The policy, which follows the table.
  [[nodiscard]] std::span<std::uint8_t> policy() const {
    return {host_ + kFirstTableBytes, arch::cpu::translate::kPolicyBytes};
  }
  /// Offset of a segment.
  [[nodiscard]] static constexpr std::uint64_t segment_at(std::size_t area, std::size_t index) {
    return kMoreTableAt - (area + 1) * kAreaBytes + index * kSegmentSpan;
  }

  /// Bytes of table and code that are in large pages, or that the kernel has refused them for.
  [[nodiscard]] std::uint64_t settled() const { return settled_; }
  /// Replaces the next small pages by a large page. Returns false if the kernel does not provide
  /// one.
  bool settle_next();
  /// Leaves the next ones as they are.
  void leave_next_small();
  /// Populates a further part of a segment. Returns false if nothing is left to do.
  bool prepare_segment(std::size_t area, std::size_t index);

  /// Call with the number of areas, or of thread parts, that are in use.
  void note_areas(std::size_t count) { areas_ever_ = std::max(areas_ever_, count); }
  void note_parts(std::size_t count) { parts_ = std::max(parts_, count); }
  /// Number of areas that any program has used: their memory cannot become thread parts again.
  [[nodiscard]] std::size_t areas_ever() const { return areas_ever_; }

  /// Returns true if nobody else has opened the file and still has it open or mapped: fcntl(2),
  /// F_SETLEASE. False also where the kernel cannot tell. For files of make() only, because the
  /// kernel does not count the description that memfd_create(2) returns.
  [[nodiscard]] bool is_ours_alone() const;
  /// Makes it ready for another program: the policy and the pages of threads become zero, as they
  /// are at first. Thread parts are of kThreadBytes.
  void clear();
  /// Returns how many bytes are populated.
  [[nodiscard]] std::uint64_t populated() const;

  /// The code of the program that used it last. Whoever writes other code there empties it.
  LeftCode left_code;

 private:
  MemoryFile(UniqueFd file, std::uint8_t* host);
  bool make_big_page(std::uint64_t offset);

  UniqueFd file_;
  std::uint64_t inode_;
  std::uint8_t* host_;
  std::uint64_t settled_ = 0;
  std::array<std::uint64_t, kMostAreas * kAreaSegments> prepared_{};  ///< Populated bytes.
  std::size_t areas_ever_ = 0;
  std::size_t parts_ = 0;
};

}  // namespace backtrail::tracee::cache
