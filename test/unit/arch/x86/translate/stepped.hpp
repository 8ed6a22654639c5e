#pragma once
/// @file
/// Stops in front of every instruction of code that lies in this process, by the trap flag.

#include <cstdint>
#include <functional>
#include <vector>

#include "arch/base/address.hpp"
#include "test/unit/arch/x86/translate/translated_run.hpp"

namespace backtrail::arch::x86::translate {

/// As long as it lives, bt_test_enter() goes to code that is stepped until bt_test_leave(), and
/// `on_stop` is called in front of each instruction that lies in one of the ranges. One at a time.
class Stepped {
 public:
  using OnStop = std::function<void(TraceeAddr pc, const MachineState& state)>;
  Stepped(std::vector<Branch> ranges, OnStop on_stop);
  ~Stepped();
  Stepped(const Stepped&) = delete;
  Stepped& operator=(const Stepped&) = delete;

  [[nodiscard]] static bool active();
};

/// The trap flag, in the flags.
inline constexpr std::uint64_t kTrapFlag = 0x100;

}  // namespace backtrail::arch::x86::translate
