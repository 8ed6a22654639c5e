// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Registers and memory of a dead program's thread at places in its past.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "decoder/corefile/core_file.hpp"
#include "decoder/past/step_index.hpp"
#include "decoder/values/value_history.hpp"
#include "ptrace/core/core_memory.hpp"
#include "server/target/core_pages.hpp"
#include "server/target/register_slots.hpp"

namespace backtrail::server {

/// Recovers values on demand, for the newest million instructions of the thread; older values are
/// unknown. See docs/values.md for the rules.
class CoreValues {
 public:
  /// All arguments but `facts` are borrowed. `facts` are the values that were recorded, sorted by
  /// record and numbered as `records`.
  CoreValues(const CorePages& pages, const decoder::CoreThread& thread, tracee::CoreMemory& memory,
             const RegisterSlots& slots, decoder::Timeline& timeline,
             decoder::RecordSequence& records, std::vector<decoder::ValueFact> facts);

  /// Returns the oldest place at which anything but constant memory may be known, as far as values
  /// have been recovered.
  decoder::PastPosition oldest() { return index_.place(history_.horizon()); }
  /// The instructions that values are known of are numbered; the last number is that of the end.
  [[nodiscard]] decoder::values::ValueHistory& history() { return history_; }
  [[nodiscard]] std::size_t steps() const { return index_.steps(); }
  /// Puts the known registers into `raw`.
  /// @return Whether each is known, by gdb's number; empty if the place is too old.
  std::vector<bool> registers(const decoder::PastPosition& place, arch::cpu::RawRegisters& raw);
  /// Returns the known bits of one slot; none if the place is too old.
  decoder::values::Known slot(const decoder::PastPosition& place, decoder::values::Slot slot);
  /// Copies the known bytes from `address` on. Returns the number of bytes before the first unknown
  /// one.
  std::size_t memory(const decoder::PastPosition& place, TraceeAddr address,
                     std::span<std::uint8_t> out);

 private:
  /// The thread and its memory where the trace ends.
  class End final : public decoder::values::EndState {
   public:
    End(const CorePages& pages, const decoder::CoreThread& thread, tracee::CoreMemory& memory,
        const RegisterSlots& slots)
        : pages_{pages}, raw_{thread.user, thread.xsave}, memory_{memory}, slots_{slots} {}
    decoder::values::Known reg(decoder::values::Slot slot) override;
    decoder::values::PageKind page(TraceeAddr address) override;
    decoder::values::Known granule(TraceeAddr address) override;
    bool stable(TraceeAddr granule) override { return pages_.stable(granule); }
    bool all_is_private() override { return pages_.all_is_private(); }
    std::optional<std::pair<TraceeAddr, TraceeAddr>> heap() override { return pages_.heap(); }

   private:
    const CorePages& pages_;
    arch::cpu::RawRegisters raw_;
    tracee::CoreMemory& memory_;
    const RegisterSlots& slots_;
  };

  const RegisterSlots& slots_;
  decoder::StepIndex index_;
  End end_;
  decoder::values::ValueHistory history_;
};

}  // namespace backtrail::server
