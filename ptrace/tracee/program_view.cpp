// SPDX-License-Identifier: Apache-2.0
#include "ptrace/tracee/program_view.hpp"

#include <algorithm>

namespace backtrail::tracee {

std::size_t ProgramView::read_code(TraceeAddr address, std::span<std::uint8_t> out) {
  return breakpoints_.read(address, out);
}

std::span<const std::uint8_t> ProgramView::insn_bytes(TraceeAddr pc) {
  if (!glimpse_ || glimpse_->at != pc) {
    Glimpse fresh{.at = pc, .bytes = {}, .available = 0};
    fresh.available = read_code(pc, fresh.bytes);
    glimpse_ = fresh;
  }
  return std::span{glimpse_->bytes}.first(glimpse_->available);
}

void ProgramView::note_insn_bytes(TraceeAddr pc, std::span<const std::uint8_t> bytes) {
  Glimpse known{.at = pc, .bytes = {}, .available = std::min(bytes.size(), arch::kMaxInsnBytes)};
  std::copy_n(bytes.begin(), known.available, known.bytes.begin());
  glimpse_ = known;
}

std::size_t ProgramView::read(TraceeAddr address, std::span<std::uint8_t> out) {
  return breakpoints_.read(address, out);
}

Result<void> ProgramView::write(TraceeAddr address, std::span<const std::uint8_t> data) {
  forget_insn_bytes();
  return breakpoints_.write(address, data);
}

void ProgramView::forget_program() {
  breakpoints_.forget_all();
  insns_.invalidate_all();
}

void ProgramView::inherit_from(const ProgramView& parent) {
  breakpoints_ = parent.breakpoints_.copy_for(memory_);
}

}  // namespace backtrail::tracee
