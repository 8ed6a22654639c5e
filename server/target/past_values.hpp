// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Registers and memory of a thread at places in its past.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "decoder/past/step_index.hpp"
#include "decoder/values/value_history.hpp"
#include "ptrace/core/program_memory.hpp"
#include "server/target/past_end.hpp"
#include "server/target/register_slots.hpp"

namespace backtrail::server {

/// Recovers values on demand, for the newest million instructions of the thread; older values are
/// unknown. See docs/values.md for the rules.
class PastValues {
 public:
  /// All arguments are borrowed. `thread` must have registers.
  PastValues(PastEnd& end, const ThreadEnd& thread, const RegisterSlots& slots,
             decoder::Timeline& timeline);

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
    /// @param constant  Since when memory was constant; null: that is not known.
    /// @param oldest    The oldest record that values are recovered for.
    End(PastEnd& end, const ThreadEnd& thread, const RegisterSlots& slots,
        const decoder::ConstantMemory* constant, std::uint64_t oldest)
        : pages_{end.pages()},
          thread_{thread},
          memory_{end.memory()},
          slots_{slots},
          constant_{constant},
          oldest_{oldest} {}
    decoder::values::Known reg(decoder::values::Slot slot) override;
    decoder::values::PageKind page(TraceeAddr address) override;
    decoder::values::Known granule(TraceeAddr address) override;
    bool stable(TraceeAddr granule) override { return pages_.stable(granule); }
    bool all_is_private() override { return pages_.all_is_private(); }
    std::optional<std::pair<TraceeAddr, TraceeAddr>> heap() override { return pages_.heap(); }

   private:
    const PastPages& pages_;
    const ThreadEnd& thread_;
    tracee::ProgramMemory& memory_;
    const RegisterSlots& slots_;
    const decoder::ConstantMemory* constant_;
    std::uint64_t oldest_;
  };

  const RegisterSlots& slots_;
  decoder::StepIndex index_;
  End end_;
  decoder::values::ValueHistory history_;
};

}  // namespace backtrail::server
