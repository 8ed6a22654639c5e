// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Finds where control moved without a record. A source that omits the kernel's part shows a signal
/// as a target from which the next branch cannot be reached.

#include <array>
#include <cstdint>
#include <optional>

#include "decoder/trace/insn_cache.hpp"
#include "decoder/trace/trace_consumer.hpp"

namespace backtrail::decoder::perf {

/// Passes records on, with a kUnseenAsync gap between two that do not join. Unreadable code counts
/// as joining.
class ContinuityFilter : public TraceConsumer {
 public:
  /// Borrows both.
  ContinuityFilter(InsnCache& insns, TraceConsumer& sink) : insns_{insns}, sink_{sink} {}

  void consume(std::span<const Record> records) override;
  void consume_mark(const TraceMark& mark) override { sink_.consume_mark(mark); }
  [[nodiscard]] std::uint64_t breaks() const { return breaks_; }

 private:
  static constexpr std::size_t kSlots = 4096;
  struct Joined {
    TraceeAddr begin;
    TraceeAddr end;
  };
  [[nodiscard]] bool joins(TraceeAddr begin, TraceeAddr end);

  InsnCache& insns_;
  TraceConsumer& sink_;
  std::array<Joined, kSlots> known_{};  ///< Blocks walked before.
  std::uint64_t generation_ = 0;
  std::optional<TraceeAddr> at_;
  std::uint64_t breaks_ = 0;
};

}  // namespace backtrail::decoder::perf
