#pragma once
/// @file
/// Which function an address belongs to, as whoever reads symbol tables knows it.

#include <cstdint>

#include "arch/base/address.hpp"

namespace backtrail::decoder {

struct FunctionRef {
  /// Names the function; all its parts have the same. 0 = nobody knows.
  std::uint32_t id = 0;
  TraceeAddr entry;
  /// A stub that leads to another function: an entry of a procedure linkage table, the dynamic
  /// linker's lazy binding. Calls through it are calls of that function.
  bool stub = false;
  /// What it calls or jumps to has another stack, which nothing on this one has called: the
  /// switches of a scheduler of its own (Go's).
  bool switches_stacks = false;

  [[nodiscard]] bool known() const { return id != 0; }
};

class CodeMap {
 public:
  virtual ~CodeMap() = default;
  virtual FunctionRef at(TraceeAddr address) = 0;
};

}  // namespace backtrail::decoder
