#pragma once
/// @file
/// What the recovery of past values starts from: the executed instructions and the state at their
/// end.

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "arch/base/address.hpp"
#include "arch/x86/values/known.hpp"
#include "arch/x86/values/slots.hpp"

namespace backtrail::decoder::values {

namespace x86 = arch::x86::values;
using x86::Known;
using x86::Slot;

/// One executed instruction. A string instruction with a repeat prefix is one step.
struct Step {
  TraceeAddr pc;
  TraceeAddr next;  ///< Where control went; 0 = not known.
};

enum class EventKind : std::uint8_t {
  kSignal,  ///< A signal was delivered: the kernel wrote a frame and entered the handler.
  kGap,     ///< Something ran that the trace does not show.
};

/// Something that happened between two steps.
struct Event {
  std::size_t before = 0;  ///< Index of the step that it precedes.
  EventKind kind = EventKind::kGap;
  TraceeAddr interrupted;  ///< Of a signal: the instruction that would have been next.
};

/// What is taken to hold over a call and the return that belongs to it.
enum class FrameLinks : std::uint8_t {
  kNone,  ///< Nothing: only what follows from the instructions.
  /// The calling convention: rsp, rbx, rbp and r12 to r15 are what they were. Knows more, and is
  /// wrong where a function breaks the convention or something overwrote a saved register.
  kConvention,
};

struct Window {
  std::vector<Step> steps;
  std::vector<Event> events;  ///< Ordered by `before`.
  TraceeAddr end_pc;          ///< The instruction at the end, which has not run.
  /// An upper bound of the size of the XSAVE area, in bytes.
  std::uint32_t xsave_bytes = 16384;
  FrameLinks links = FrameLinks::kNone;
};

enum class PageKind : std::uint8_t {
  /// May change without a store of the trace, or is not known: shared mappings, vvar, the rseq
  /// area's page if its place is not known, writable memory while other threads ran; not mapped.
  kUnknown,
  kConstant,  ///< Private and not writable.
  kPrivate,   ///< Writable by this thread's stores and its system calls alone.
};

/// The state at the end of a window. Pages are judged as they are at the end; what system calls of
/// the window did to mappings is worked out from the trace.
class EndState {
 public:
  virtual ~EndState() = default;
  [[nodiscard]] virtual Known reg(Slot slot) = 0;
  [[nodiscard]] virtual PageKind page(TraceeAddr address) = 0;
  /// The 8 bytes at `address`, a multiple of 8, least significant first; unreadable and changeable
  /// ones (the rseq area) unknown.
  [[nodiscard]] virtual Known granule(TraceeAddr address) = 0;
  /// False for bytes that change without a store of the trace though their page is kPrivate.
  [[nodiscard]] virtual bool stable(TraceeAddr granule) { return granule.value() % 8 == 0; }
  /// First and one-past-last address of the heap that brk makes; nullopt if not known.
  [[nodiscard]] virtual std::optional<std::pair<TraceeAddr, TraceeAddr>> heap() = 0;
};

}  // namespace backtrail::decoder::values
