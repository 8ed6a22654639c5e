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

const cpu::InsnModel* ModelCache::interrupted(TraceeAddr pc) {
  if (!at(pc).restartable) return nullptr;
  const auto found = interrupted_.find(pc);
  if (found != interrupted_.end()) return &found->second;
  std::array<std::uint8_t, arch::kMaxInsnBytes> bytes{};
  const std::size_t got = code_.read_code(pc, bytes);
  return &interrupted_.emplace(pc, cpu::model_interrupted(pc, std::span{bytes}.first(got)))
              .first->second;
}

void ModelCache::clear() {
  models_.clear();
  interrupted_.clear();
}

}  // namespace backtrail::decoder::values
