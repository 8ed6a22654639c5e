// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The memory of programs that have ended, kept for the next ones. To clear new pages takes a good
/// part of the time that a short program is recorded in.

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <string_view>

#include "ptrace/codecache/memory/memory_file.hpp"

namespace backtrail::tracee::cache {

class SpareMemory {
 public:
  /// Keeps this many bytes at most: by default kMostBytes or, if that is less, a small part of the
  /// memory at hand.
  explicit SpareMemory(std::uint64_t most_bytes = usual_bytes()) : most_bytes_{most_bytes} {}
  /// Keeps the memory, if it is worth it, for as long as the limits allow. Nothing may use it; the
  /// program may still have it mapped, for the kernel takes its time.
  /// @param program  What it was used for.
  void give(std::unique_ptr<MemoryFile> memory, std::string program);
  /// Returns memory that nobody uses any more, ready for use: that of the same program, so that
  /// what was populated is what will be needed. If there is none, and no room for more, that which
  /// has waited the longest. Null: none.
  std::unique_ptr<MemoryFile> take(std::string_view program);
  /// Returns false if the process needs the file's descriptor for other things: half of those that
  /// it may have are in use.
  [[nodiscard]] static bool may_hold(const MemoryFile& memory);

  static constexpr std::size_t kMost = 16;
  /// As much room is for memory of further programs: programs that run in turns, as those of a
  /// compilation do, would take each other's.
  static constexpr std::size_t kEnough = 12;
  static constexpr std::uint64_t kMostBytes = 192ULL << 20;

 private:
  [[nodiscard]] static std::uint64_t usual_bytes();
  /// Returns true from kEnough files on, or from that part of the bytes on.
  [[nodiscard]] bool is_nearly_full() const;
  struct Spare {
    std::string program;
    std::unique_ptr<MemoryFile> memory;
  };
  std::uint64_t most_bytes_;
  std::list<Spare> spares_;  ///< Newest first.
};

}  // namespace backtrail::tracee::cache
