// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A window of a trace in static single assignment form: variables, relations and accesses.

#include <array>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "arch/cpu/values.hpp"
#include "decoder/values/model_cache.hpp"
#include "decoder/values/window.hpp"

namespace backtrail::decoder::values {

/// Returns true if the system call is the return from a signal handler (rt_sigreturn): only that
/// goes elsewhere. A call interrupted by a signal may be repeated.
[[nodiscard]] inline bool is_handler_return(const Step& step, const cpu::InsnModel& call) {
  return step.next != step.pc && step.next != step.pc + call.length;
}

/// Index of a variable.
using Var = std::uint32_t;
inline constexpr Var kNoVar = ~Var{0};

/// A relation between variables.
struct Node {
  cpu::Relation relation;
  std::uint8_t count = 0;
  std::array<Var, cpu::kMaxRefs> vars{};
};

/// A memory access of the trace. Accesses are in the order of execution.
struct Access {
  cpu::AccessKind kind = cpu::AccessKind::kLoad;
  std::uint8_t size = 0;
  std::uint32_t step = 0;
  Var base = kNoVar;
  Var value = kNoVar;
  std::int64_t offset = 0;
  Var old = kNoVar;   ///< Bytes that a store overwrote, if they were recorded.
  Var fill = kNoVar;  ///< A range is filled with copies of the low `size` bytes; kNoVar: unknown.
};

/// A system call. Its accesses are three unknown stores, from `first_access` on.
struct SystemCall {
  std::uint32_t step = 0;
  std::uint32_t first_access = 0;
  std::array<Var, 7> in{};  ///< The number (rax), then rdi, rsi, rdx, r10, r8, r9.
  Var result = kNoVar;
  Var stack = kNoVar;
  bool returns_behind = true;  ///< False for rt_sigreturn, which sets every register.
};
inline constexpr unsigned kCallAccesses = 3;

/// The frame of a signal: an unknown store to the stack between the handler's stack pointer and the
/// one before.
struct SignalFrame {
  std::uint32_t access = 0;
  Var rsp_before = kNoVar;
  Var rsp_after = kNoVar;
};

class ValueGraph {
 public:
  /// Builds the graph of the steps [begin, end of window). Steps whose code is not known, and
  /// instructions without a model, break it: no value crosses them.
  ValueGraph(const Window& window, std::size_t begin, ModelCache& models, EndState& end);

  /// Index of the first step that the graph covers: `begin`, or after the last break.
  [[nodiscard]] std::size_t begin() const { return begin_; }
  [[nodiscard]] std::size_t end() const { return end_; }
  /// The variable of each register.
  using Slots = std::array<Var, cpu::kSlotCount>;
  /// Returns the variable of a register before step `position`, begin() <= position <= end().
  [[nodiscard]] Var reg(std::size_t position, Slot slot) const;
  /// As reg(), of all registers.
  [[nodiscard]] Slots registers(std::size_t position) const;
  /// Returns the first access of step `position` or later.
  [[nodiscard]] std::uint32_t first_access(std::size_t position) const {
    return first_access_[position - begin_];
  }

  std::vector<Known> known;
  std::vector<Node> nodes;
  std::vector<Access> accesses;
  std::vector<SystemCall> calls;
  std::vector<SignalFrame> frames;
  std::vector<Var> stack_pointers;  ///< All that rsp is at any step.
  /// The most bytes that the kernel writes as a signal's frame.
  std::uint32_t frame_bytes = 0;
  /// False if facts of the trace contradict each other.
  bool consistent = true;
  /// The accesses from this one on may have been made by the instruction at the end, before it was
  /// stopped.
  std::uint32_t half_done_accesses = 0;

 private:
  static constexpr std::size_t kCheckpointSteps = 64;

  [[nodiscard]] static std::size_t last_break(const Window& window, std::size_t begin,
                                              ModelCache& models, EndState& end);
  Var fresh() {
    known.emplace_back();
    return static_cast<Var>(known.size() - 1);
  }
  Var constant(std::uint64_t value);
  void forget(std::span<const Slot> slots);
  void add_signal(const Window& window, std::size_t event, ModelCache& models);
  /// Adds the facts before a signal, or before the step.
  void add_facts(const Window& window, std::size_t signal);
  void add_register(const Fact& fact);
  void add_old_bytes(const Fact& fact, const arch::OldBytes& old);
  void place_old_bytes(const cpu::InsnModel& model, TraceeAddr next);
  void find_old_bytes(Access& store) const;
  /// Adds a load of the instruction's bytes.
  void add_fetch(const Step& step, EndState& end);
  void add_step(const Step& step, const cpu::InsnModel& model);
  void add_system_call();
  void add_handler_return();
  /// Adds the kernel's stores to the frame of a signal, of registers with these variables.
  void add_frame_words(const Slots& before, bool is_after_call);
  /// Adds those to words that some recorders have changed.
  void add_more_frame_words(const Slots& before, TraceeAddr interrupted);
  void instantiate(const cpu::InsnModel& model, TraceeAddr next);
  void follow_branch(const cpu::InsnModel& model, const Step& step);
  Var var_of(cpu::Ref ref, const cpu::InsnModel& model, TraceeAddr next);
  void link_frames(const Window& window, ModelCache& models);
  void meet_end(ModelCache& models, const Window& window, EndState& end);
  void define(Slot slot, Var var);

  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::size_t step_ = 0;
  std::size_t next_fact_ = 0;
  /// The loads of what this step overwrites. They come before the step's own accesses.
  std::vector<std::pair<arch::OldBytes, std::uint32_t>> old_bytes_;
  Var temps_ = 0;
  Slots current_{};
  std::unordered_map<std::uint64_t, Var> constants_;
  std::vector<Slots> checkpoints_;
  std::vector<std::pair<Slot, Var>> definitions_;
  std::vector<std::uint32_t> first_definition_;  ///< By position, from begin_ on.
  std::vector<std::uint32_t> first_access_;
};

}  // namespace backtrail::decoder::values
