// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Instruction models by address, for one address space.

#include <cstdint>
#include <unordered_map>

#include "arch/cpu/values.hpp"
#include "decoder/trace/code_reader.hpp"
#include "decoder/values/window.hpp"

namespace backtrail::decoder::values {

/// Models each instruction once. Call clear() when code has changed.
class ModelCache {
 public:
  /// `code` is borrowed and must outlive the cache.
  ModelCache(CodeReader& code, std::uint64_t components) : code_{code}, components_{components} {}

  /// Returns the model of the instruction that is at `pc` now; its length is 0 if there is none.
  const arch::cpu::values::InsnModel& at(TraceeAddr pc);
  /// Returns the model of an executed instruction.
  const arch::cpu::values::InsnModel& of(const Step& step);
  /// Returns a model of an interrupted instruction that is at `pc` now; null if it cannot be
  /// interrupted half done.
  const arch::cpu::values::InsnModel* interrupted(TraceeAddr pc);
  /// As interrupted(), of the instruction that a signal interrupted.
  const arch::cpu::values::InsnModel* interrupted_by(const Event& signal);
  void clear();

 private:
  CodeReader& code_;
  std::uint64_t components_;
  std::unordered_map<TraceeAddr, arch::cpu::values::InsnModel> models_;
  /// Models of Step::code.
  std::unordered_map<const ExecutedInsn*, arch::cpu::values::InsnModel> executed_;
  std::unordered_map<TraceeAddr, arch::cpu::values::InsnModel> interrupted_;
  std::unordered_map<const ExecutedInsn*, arch::cpu::values::InsnModel> interrupted_executed_;
};

}  // namespace backtrail::decoder::values
