// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Stops before every instruction of code in this process, by means of the trap flag.

#include <cstdint>
#include <functional>
#include <vector>

#include "arch/base/address.hpp"
#include "test/unit/arch/x86/translate/translated_run.hpp"

namespace backtrail::arch::x86::translate {

/// While it exists, bt_test_enter() single-steps the code up to bt_test_leave(), and calls
/// `on_stop` before each instruction in one of the ranges. Only one may exist at a time.
class Stepped {
 public:
  using OnStop = std::function<void(TraceeAddr pc, const MachineState& state)>;
  Stepped(std::vector<Branch> ranges, OnStop on_stop);
  ~Stepped();
  Stepped(const Stepped&) = delete;
  Stepped& operator=(const Stepped&) = delete;

  [[nodiscard]] static bool active();
};

/// The trap flag, a bit of the flags register.
inline constexpr std::uint64_t kTrapFlag = 0x100;

}  // namespace backtrail::arch::x86::translate
