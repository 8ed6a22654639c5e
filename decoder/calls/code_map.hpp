#pragma once
/// @file
/// Which function an address belongs to, as whoever reads symbol tables knows it.

#include <cstdint>

#include "arch/base/address.hpp"

namespace backtrail::decoder {

/// What a function does to the stack, that is not for its caller. What runs afterwards has not been
/// called by anything on the stack before.
enum class StackSwitch : std::uint8_t {
  kNone,
  kLeaves,  ///< What it calls has another stack (Go's mcall).
  kGoesOn,  ///< It jumps to where another stack was left or begins; its own is of no use any more.
  kSwaps,   ///< It leaves its stack and goes on with another one, to come back (swapcontext).
};

struct FunctionRef {
  /// Names the function; all its parts have the same. 0 = nobody knows.
  std::uint32_t id = 0;
  TraceeAddr entry;
  /// A stub that leads to another function: an entry of a procedure linkage table, the dynamic
  /// linker's lazy binding. Calls through it are calls of that function.
  bool stub = false;
  StackSwitch stack_switch = StackSwitch::kNone;

  [[nodiscard]] bool known() const { return id != 0; }
};

class CodeMap {
 public:
  virtual ~CodeMap() = default;
  virtual FunctionRef at(TraceeAddr address) = 0;
};

}  // namespace backtrail::decoder
