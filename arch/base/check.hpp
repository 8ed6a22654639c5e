#pragma once
/// @file
/// Assertions about our own code, on in every build. What a client, the kernel or a traced
/// program does never reaches one.

namespace backtrail {

/// Called once before a failed check aborts: lifts breakpoints, lets threads go. Best effort.
using EmergencyHook = void (*)() noexcept;
void set_emergency_hook(EmergencyHook hook) noexcept;

[[noreturn]] void check_failed(const char* condition, const char* file, int line) noexcept;

}  // namespace backtrail

#define BT_CHECK(condition) \
  ((condition) ? static_cast<void>(0) : ::backtrail::check_failed(#condition, __FILE__, __LINE__))
