// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Write-protects code pages that the program may write but hardly ever does, until it writes them.
/// Code that may be written at any time is compared each time it is entered; code of these pages
/// need not be.

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "arch/base/page.hpp"
#include "arch/base/result.hpp"
#include "decoder/cachelog/exit_table.hpp"
#include "ptrace/codecache/program/code_pages.hpp"
#include "ptrace/codecache/program/executable_map.hpp"
#include "ptrace/codecache/program/protected_pages.hpp"

namespace backtrail::tracee {
struct MapEntry;
class Process;
class Thread;
}  // namespace backtrail::tracee

namespace backtrail::tracee::cache {

class PageProtection {
 public:
  /// Requests to the translations, and a question about the address space.
  struct Hooks {
    /// Drops translations of [begin, end).
    std::function<void(TraceeAddr begin, TraceeAddr end)> drop;
    /// Drops them and makes threads leave them, because the code has changed or may change.
    std::function<void(TraceeAddr begin, TraceeAddr end)> evict;
    /// Returns true if every page may change at any time.
    std::function<bool()> all_may_change;
    /// Returns true if processes use the memory whose write faults are not brought here.
    std::function<bool()> has_strangers;
  };
  /// Borrows the first three.
  PageProtection(Process& process, const ExecutableMap& executable, CodePages& pages, Hooks hooks)
      : process_{process}, executable_{executable}, pages_{pages}, hooks_{std::move(hooks)} {}

  [[nodiscard]] const ProtectedPages& pages() const { return protected_; }
  /// Returns true if an instruction at `address` lies in write-protected pages, so that no write to
  /// it goes unseen.
  [[nodiscard]] bool is_protected(TraceeAddr address) const;
  /// Returns true if pages of the range that the process wrote change only by its own writes.
  [[nodiscard]] bool keeps_copies(const ExecutableMap::Range& range) const;

  /// Call with a stopped thread's log: write-protects code pages that run often.
  void look_at_log(Thread& thread, std::span<const std::uint32_t> log,
                   const decoder::ExitTable& exits);
  /// Call when files for which `is_of_it` is true were opened for writing.
  void files_may_change(const std::function<bool(const MapEntry&)>& is_of_it);

  /// A write-protected page that a thread may write for one instruction.
  struct WrittenPage {
    TraceeAddr begin;
    std::array<std::uint8_t, kPageBytes> before{};
  };
  /// Unprotects the page or pages at `at` for the next instruction, which writes there.
  Result<void> let_write(Thread& thread, TraceeAddr at, std::vector<WrittenPage>& written);
  /// Protects the pages again after that instruction. `thread` is null if it has ended.
  void note_written(Thread* thread, std::vector<WrittenPage>& written);
  /// Unprotects all pages in [begin, end). The thread must be stopped outside of system calls.
  Result<void> unprotect(Thread& thread, TraceeAddr begin, TraceeAddr end);
  Result<void> unprotect_all(Thread& thread);
  /// While keep_unprotected(true) is in effect, no page becomes write-protected: the memory is
  /// about to be copied, or other processes write it. Calls nest; each needs one with false.
  void keep_unprotected(bool on) { on ? ++unprotected_ : --unprotected_; }

 private:
  Result<void> write_protect(Thread& thread, const std::vector<TraceeAddr>& pages);
  [[nodiscard]] bool is_protected_page(TraceeAddr address) const;
  /// Notes the samples of the log. Returns false if a page could not be unprotected.
  bool sample(Thread& thread, std::span<const std::uint32_t> log, const decoder::ExitTable& exits);
  [[nodiscard]] std::vector<TraceeAddr> due_pages(Thread& thread);
  /// Call for a range whose file was open for writing. Returns true if the file is not open any
  /// more, so that written pages are the process's own copies.
  bool let_keep_copies(Thread& thread, const ExecutableMap::Range& range);
  /// Returns true if a page that is due may be write-protected.
  bool is_settled(Thread& thread, TraceeAddr page);
  /// Drops translations of the bytes that changed.
  void drop_changed(const WrittenPage& page);

  Process& process_;
  const ExecutableMap& executable_;
  CodePages& pages_;
  Hooks hooks_;
  ProtectedPages protected_;
  /// Ranges of files that were open for writing and no longer are.
  std::vector<ExecutableMap::Range> let_go_;
  int unprotected_ = 0;
};

}  // namespace backtrail::tracee::cache
