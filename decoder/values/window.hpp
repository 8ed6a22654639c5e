// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Input for the recovery of past values: the executed instructions and the state at their end.

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "arch/base/address.hpp"
#include "arch/base/value_kind.hpp"
#include "arch/cpu/values.hpp"
#include "decoder/trace/executed_insn.hpp"

namespace backtrail::decoder::values {

namespace cpu = arch::cpu::values;
using cpu::Known;
using cpu::Slot;

/// One executed instruction. A string instruction with a repeat prefix is one step.
struct Step {
  TraceeAddr pc;
  TraceeAddr next;  ///< Address at which control continued; 0 = unknown.
  /// The instruction, if the trace tells its bytes; null: it is what memory has at `pc`, provided
  /// that this memory was constant. Borrowed.
  const ExecutedInsn* code = nullptr;
};

enum class EventKind : std::uint8_t {
  kSignal,  ///< A signal was delivered: the kernel wrote a frame and entered the handler.
  kGap,     ///< Instructions ran that the trace lacks.
};

/// An event between two steps.
struct Event {
  std::size_t before = 0;  ///< Index of the step that it precedes.
  EventKind kind = EventKind::kGap;
  TraceeAddr interrupted;              ///< For a signal: the instruction that would have been next.
  const ExecutedInsn* code = nullptr;  ///< The interrupted instruction, as Step::code.
};

/// A value that was recorded before a step.
struct Fact {
  std::size_t step = 0;
  arch::ValueKind kind = 0;
  std::uint64_t value = 0;
  /// The index of the signal before the step that the value comes before; kNoSignal if it comes
  /// after all of them.
  std::size_t signal = kNoSignal;
  static constexpr std::size_t kNoSignal = ~std::size_t{0};
};

/// Assumptions about a call and its return.
enum class FrameLinks : std::uint8_t {
  kNone,  ///< No assumptions: only facts that follow from the instructions.
  /// The calling convention: rsp, rbx, rbp and r12 to r15 are preserved. Yields more values, but
  /// wrong ones if a function breaks the convention or something overwrote a saved register.
  kConvention,
};

struct Window {
  std::vector<Step> steps;
  std::vector<Event> events;  ///< Ordered by `before`.
  std::vector<Fact> facts;    ///< Ordered by `step`, then by `signal`.
  TraceeAddr end_pc;          ///< The next instruction at the end, which has not run.
  /// The thread was stopped at the end; a repeated string instruction there may be half done.
  /// False where the trace goes on.
  bool stopped = true;
  /// The components of the XSAVE area (XCR0).
  std::uint64_t components = cpu::kAnyComponents;
  FrameLinks links = FrameLinks::kNone;
};

enum class PageKind : std::uint8_t {
  /// May change without a store of the trace, or is unknown: shared mappings, vvar, the rseq area's
  /// page if its address is unknown, writable memory while other threads ran, unmapped memory.
  kUnknown,
  kConstant,  ///< Private and not writable.
  kPrivate,   ///< Written only by this thread's stores and system calls.
};

/// The state at the end of a window. Pages are classified as at the end; changes of mappings by
/// system calls in the window are derived from the trace.
class EndState {
 public:
  virtual ~EndState() = default;
  [[nodiscard]] virtual Known reg(Slot slot) = 0;
  [[nodiscard]] virtual PageKind page(TraceeAddr address) = 0;
  /// Returns the 8 bytes at `address`, a multiple of 8, least significant first; bytes that are
  /// unreadable or may change (the rseq area) are unknown.
  [[nodiscard]] virtual Known granule(TraceeAddr address) = 0;
  /// Returns false for bytes that may change without a store of the trace although their page is
  /// kPrivate.
  [[nodiscard]] virtual bool stable(TraceeAddr granule) { return granule.value() % 8 == 0; }
  /// Returns true if all memory that can be written is kPrivate, wherever it is: no mapping is
  /// shared with others. Links by the stack (stack_links.hpp) are possible then.
  [[nodiscard]] virtual bool all_is_private() { return false; }
  /// Returns the first and one-past-last address of the heap made by brk; nullopt if unknown.
  [[nodiscard]] virtual std::optional<std::pair<TraceeAddr, TraceeAddr>> heap() = 0;
};

}  // namespace backtrail::decoder::values
