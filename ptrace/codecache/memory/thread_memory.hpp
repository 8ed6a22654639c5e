// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A thread's part of the memory that recorder and program share: its page, its log, its values.

#include <cstddef>
#include <cstdint>
#include <span>

#include "arch/base/address.hpp"
#include "arch/cpu/translator.hpp"
#include "ptrace/codecache/memory/memory_file.hpp"

namespace backtrail::tracee::cache {

/// A log entry that has not been written since the log was blanked; no exit has this id.
inline constexpr std::uint32_t kBlankEntry = ~0U;

/// Memory in which a log is written, up to a guard page.
struct LogRange {
  std::uint8_t* host = nullptr;  ///< The server's address of it.
  TraceeAddr begin;
  TraceeAddr end;

  [[nodiscard]] std::uint64_t bytes() const { return end - begin; }
  /// Returns true if `log` can be a log pointer: it is the place of an entry, or the end.
  [[nodiscard]] bool holds(TraceeAddr log) const {
    return log >= begin && log <= end && (log - begin) % sizeof(std::uint32_t) == 0;
  }
};

/// A thread part, as the server sees it.
class ThreadMemory {
 public:
  /// Uses the log in the part.
  ThreadMemory(std::uint8_t* host, TraceeAddr base)
      : host_{host},
        base_{base},
        log_{host + arch::cpu::translate::kThreadPageBytes,
             base + arch::cpu::translate::kThreadPageBytes,
             base + arch::cpu::translate::kThreadPageBytes + kLogBytes} {}

  [[nodiscard]] std::uint64_t read(arch::cpu::translate::Slot slot) const;
  void write(arch::cpu::translate::Slot slot, std::uint64_t value);
  void write32(arch::cpu::translate::Slot slot, std::uint32_t value);
  /// Takes a request that the running thread has posted; it then waits for answer() or refuse().
  /// Returns false if there is none.
  bool take_request();
  void answer(TraceeAddr next);
  void refuse();
  /// Call when the thread is stopped: it does not wait for an answer any more.
  void drop_request();
  /// The gs base.
  [[nodiscard]] TraceeAddr page() const { return base_; }
  /// Beginning of the log entries that were not taken yet, and the end of the log.
  [[nodiscard]] TraceeAddr log_begin() const { return log_.begin; }
  [[nodiscard]] TraceeAddr log_end() const { return log_.end; }
  [[nodiscard]] const LogRange& log() const { return log_; }
  void set_log(const LogRange& log) { log_ = log; }
  /// Returns the server's address of an offset in the thread page.
  [[nodiscard]] std::uint8_t* scratch(std::uint64_t offset) const { return host_ + offset; }
  /// Returns the log entries up to a log pointer; empty if that is not in the log.
  [[nodiscard]] std::span<const std::uint32_t> entries(TraceeAddr log) const;
  /// Blanks every entry. A log is written from its beginning, so that all entries after the first
  /// blank one are blank.
  void blank_log() const;
  /// Returns the entries up to the first blank one; the first `known` need no check. The thread may
  /// run: it writes each entry with one store, and x86 CPUs show stores in order.
  [[nodiscard]] std::span<const std::uint32_t> written(std::size_t known) const;
  /// The ring of values. It must be there.
  [[nodiscard]] std::span<const std::uint64_t> values() const;

 private:
  void set_request(arch::cpu::translate::Request state);

  std::uint8_t* host_;
  TraceeAddr base_;
  LogRange log_;
};

}  // namespace backtrail::tracee::cache
