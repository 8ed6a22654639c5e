#pragma once
/// @file
/// Finds where control moved without a record: a source that leaves out the kernel's part shows a
/// signal as a target from which the next branch cannot be reached.

#include <array>
#include <cstdint>
#include <optional>

#include "decoder/trace/insn_cache.hpp"
#include "decoder/trace/trace_consumer.hpp"

namespace backtrail::decoder::perf {

/// Hands records on, with a gap of reason kUnseenAsync where two of them do not join. Code that
/// cannot be read joins: nothing is known against it.
class ContinuityFilter : public TraceConsumer {
 public:
  /// Both are borrowed.
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
  std::array<Joined, kSlots> known_{};  ///< Blocks that were walked before.
  std::uint64_t generation_ = 0;
  std::optional<TraceeAddr> at_;
  std::uint64_t breaks_ = 0;
};

}  // namespace backtrail::decoder::perf
