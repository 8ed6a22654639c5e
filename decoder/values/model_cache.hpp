// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Instruction models by address, for one address space.

#include <cstdint>
#include <unordered_map>

#include "arch/cpu/values.hpp"
#include "decoder/trace/code_reader.hpp"

namespace backtrail::decoder::values {

/// Models each instruction once. Call clear() when code has changed.
class ModelCache {
 public:
  /// `code` is borrowed and must outlive the cache.
  ModelCache(CodeReader& code, std::uint64_t components) : code_{code}, components_{components} {}

  /// Returns the model of the instruction at `pc`; its length is 0 if there is none.
  const arch::cpu::values::InsnModel& at(TraceeAddr pc);
  /// Returns a model of an interrupted instruction at `pc`; null if it cannot be interrupted half
  /// done.
  const arch::cpu::values::InsnModel* interrupted(TraceeAddr pc);
  void clear();

 private:
  CodeReader& code_;
  std::uint64_t components_;
  std::unordered_map<TraceeAddr, arch::cpu::values::InsnModel> models_;
  std::unordered_map<TraceeAddr, arch::cpu::values::InsnModel> interrupted_;
};

}  // namespace backtrail::decoder::values
