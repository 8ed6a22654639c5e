// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The end of a program's past: the state from which everything before is derived.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "arch/cpu/gdb_registers.hpp"
#include "decoder/past/record_sequence.hpp"
#include "decoder/past/timeline.hpp"
#include "decoder/trace/value_fact.hpp"
#include "ptrace/core/program_memory.hpp"
#include "ptrace/tracee/thread_id.hpp"
#include "server/target/past_pages.hpp"

namespace backtrail::server {

/// One thread where its trace ends.
struct ThreadEnd {
  TraceeAddr pc;
  std::unique_ptr<decoder::RecordSequence> records;
  /// Values that were recorded, sorted by record and numbered as `records`.
  std::vector<decoder::ValueFact> facts;
  /// nullopt: no values of the thread can be recovered.
  std::optional<arch::cpu::RawRegisters> registers;
  /// The thread is inside a system call, or the kernel will repeat the one before pc: its result
  /// does not tell what it did.
  bool in_call = false;
  /// The newest place at which the debugger changed registers or memory; nullopt if there is none.
  std::optional<decoder::PastPosition> changed;
};

/// A program whose threads stand still: a crash file's, or a live one. Nothing changes while the
/// object exists.
class PastEnd {
 public:
  PastEnd() = default;
  PastEnd(const PastEnd&) = delete;
  PastEnd& operator=(const PastEnd&) = delete;
  virtual ~PastEnd() = default;
  /// Returns nullopt if there is no such thread.
  virtual std::optional<ThreadEnd> thread(tracee::ThreadId id) = 0;
  [[nodiscard]] virtual tracee::ProgramMemory& memory() = 0;
  [[nodiscard]] virtual const PastPages& pages() const = 0;
  [[nodiscard]] virtual const arch::cpu::GdbRegisterSet& registers() const = 0;
  /// Returns a sentence for the user about a thread without a past.
  [[nodiscard]] virtual std::string why_no_past(tracee::ThreadId id) const = 0;
};

}  // namespace backtrail::server
