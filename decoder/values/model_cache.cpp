// SPDX-License-Identifier: Apache-2.0
#include "decoder/values/model_cache.hpp"

#include <array>

#include "arch/insn.hpp"

namespace backtrail::decoder::values {

namespace cpu = arch::cpu::values;

const cpu::InsnModel& ModelCache::at(TraceeAddr pc) {
  const auto found = models_.find(pc);
  if (found != models_.end()) return found->second;
  std::array<std::uint8_t, arch::kMaxInsnBytes> bytes{};
  const std::size_t got = code_.read_code(pc, bytes);
  return models_.emplace(pc, cpu::model_insn(pc, std::span{bytes}.first(got), components_))
      .first->second;
}

const cpu::InsnModel& ModelCache::of(const Step& step) {
  if (step.code == nullptr) return at(step.pc);
  const auto found = executed_.find(step.code);
  if (found != executed_.end()) return found->second;
  return executed_.emplace(step.code, cpu::model_insn(step.pc, step.code->view(), components_))
      .first->second;
}

const cpu::InsnModel* ModelCache::interrupted(TraceeAddr pc) {
  if (!at(pc).restartable) return nullptr;
  const auto found = interrupted_.find(pc);
  if (found != interrupted_.end()) return &found->second;
  std::array<std::uint8_t, arch::kMaxInsnBytes> bytes{};
  const std::size_t got = code_.read_code(pc, bytes);
  return &interrupted_.emplace(pc, cpu::model_interrupted(pc, std::span{bytes}.first(got)))
              .first->second;
}

const cpu::InsnModel* ModelCache::interrupted_by(const Event& signal) {
  const TraceeAddr pc = signal.interrupted;
  if (signal.code == nullptr) return interrupted(pc);
  if (!of({.pc = pc, .next = {}, .code = signal.code}).restartable) return nullptr;
  const auto [found, is_new] = interrupted_executed_.try_emplace(signal.code);
  if (is_new) found->second = cpu::model_interrupted(pc, signal.code->view());
  return &found->second;
}

void ModelCache::clear() {
  models_.clear();
  executed_.clear();
  interrupted_.clear();
  interrupted_executed_.clear();
}

}  // namespace backtrail::decoder::values
