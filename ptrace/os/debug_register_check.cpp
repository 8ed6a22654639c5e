// SPDX-License-Identifier: Apache-2.0
#include "ptrace/os/debug_register_check.hpp"

#include <cerrno>
#include <csignal>

#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arch/base/address.hpp"
#include "arch/cpu/debug_registers.hpp"
#include "ptrace/os/ptrace_request.hpp"

namespace backtrail::tracee {
namespace {

constexpr unsigned kDebugControl = 7;
constexpr unsigned kMostSeconds = 10;

/// The child calls this after its stop; the breakpoint is here.
[[gnu::noinline, gnu::used]] void watched_place() {
  asm volatile("");
}

[[noreturn]] void be_tried() {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(1);
  ::alarm(kMostSeconds);  // bounds the test
  ::kill(::getpid(), SIGSTOP);
  watched_place();
  ::_exit(0);
}

/// Waits for the child's next stop or its end.
bool wait_for(pid_t child, int& status) {
  pid_t got = 0;
  do {
    got = ::waitpid(child, &status, __WALL);
  } while (got < 0 && errno == EINTR);
  return got == child;
}

/// Resumes the stopped child towards the breakpoint. Returns true if it stops there, or if the test
/// cannot be made.
bool traps(pid_t child) {
  arch::cpu::DebugRegisters wanted;
  const TraceeAddr place{reinterpret_cast<std::uintptr_t>(&watched_place)};  // NOLINT
  if (!wanted.insert(place, 1, arch::cpu::DebugAccess::kExecute) ||
      !request::write_debug_register(child, 0, place.value()) ||
      !request::write_debug_register(child, kDebugControl, wanted.control()) ||
      !request::cont(child, 0)) {
    return true;
  }
  int status = 0;
  return !wait_for(child, status) || !WIFEXITED(status);
}

bool try_them() {
  const pid_t child = ::fork();
  if (child < 0) return true;
  if (child == 0) be_tried();
  int status = 0;
  if (!wait_for(child, status) || !WIFSTOPPED(status)) return true;
  const bool trapped = traps(child);
  ::kill(child, SIGKILL);
  if (trapped) {
    while (wait_for(child, status) && WIFSTOPPED(status)) {
    }
  }
  return trapped;
}

}  // namespace

bool debug_registers_trap() {
  static const bool works = try_them();
  return works;
}

}  // namespace backtrail::tracee
