#include "arch/base/check.hpp"

#include <atomic>
#include <cstdio>
#include <cstdlib>

namespace backtrail {
namespace {
std::atomic<EmergencyHook> g_hook{nullptr};
}  // namespace

void set_emergency_hook(EmergencyHook hook) noexcept {
  g_hook = hook;
}

void check_failed(const char* condition, const char* file, int line) noexcept {
  std::fprintf(stderr, "backtrail: internal error: %s:%d: %s\n", file, line, condition);
  if (EmergencyHook hook = g_hook.exchange(nullptr)) hook();
  std::abort();
}

}  // namespace backtrail
