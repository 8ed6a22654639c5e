// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What call frame information says about one frame.

#include <cstdint>
#include <memory>
#include <optional>

#include <elfutils/libdw.h>

#include "decoder/variables/frame_state.hpp"
#include "decoder/variables/work_limit.hpp"

namespace backtrail::decoder {

class UnwindRules {
 public:
  /// No rules.
  UnwindRules() = default;
  /// @param table  May be null. Borrowed.
  /// @param address  In the file.
  UnwindRules(Dwarf_CFI* table, std::uint64_t address);
  /// Returns false if the table has no rules for the address.
  [[nodiscard]] bool found() const { return frame_ != nullptr; }

  /// Returns the canonical frame address; nullopt if it is not known.
  [[nodiscard]] std::optional<std::uint64_t> cfa(FrameState& state, WorkLimit& work) const;
  /// Returns how far the CFA is from rsp, if the rule is rsp and a constant.
  [[nodiscard]] std::optional<std::uint64_t> distance_from_sp() const;
  /// Returns the caller's registers; null if its stack pointer or pc is not known. The result
  /// borrows `state`.
  [[nodiscard]] std::unique_ptr<FrameState> caller(FrameState& state, WorkLimit& work) const;

 private:
  [[nodiscard]] FrameState::Known caller_register(unsigned number, std::uint64_t cfa,
                                                  FrameState& state, WorkLimit& work) const;

  std::shared_ptr<Dwarf_Frame> frame_;
};

}  // namespace backtrail::decoder
