#include "ptrace/cache/call_filters.hpp"

#include <cerrno>
#include <csignal>
#include <optional>

#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace backtrail::tracee::cache {
namespace {

constexpr std::size_t kBytes = 4096;

/// In a child: it may be killed.
bool makes_our_calls() {
  const auto file = static_cast<int>(::syscall(SYS_memfd_create, "backtrail", MFD_CLOEXEC));
  if (file < 0 || ::ftruncate(file, kBytes) != 0) return false;
  void* code = ::mmap(nullptr, kBytes, PROT_READ | PROT_EXEC, MAP_SHARED, file, 0);
  if (code == MAP_FAILED || ::madvise(code, kBytes, MADV_DONTFORK) != 0 ||
      ::mprotect(code, kBytes, PROT_NONE) != 0 || ::munmap(code, kBytes) != 0) {
    return false;
  }
  struct sigaction action {};
  return ::sigaction(SIGSEGV, nullptr, &action) == 0 &&
         ::syscall(SYS_tgkill, ::getpid(), ::syscall(SYS_gettid), 0) == 0;
}

bool lets_a_child_call() {
  const pid_t child = ::fork();
  if (child < 0) return false;
  if (child == 0) {
    (void)::prctl(PR_SET_DUMPABLE, 0);
    ::_exit(makes_our_calls() ? 0 : 1);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return false;
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/// How many are in force here; nothing: they forbid too much, or cannot be told from others.
std::optional<int> own_filters() {
  const auto status = ProcFs{}.status(::getpid());
  if (!status || !status->seccomp_filters || !lets_a_child_call()) return std::nullopt;
  return status->seccomp_filters;
}

}  // namespace

bool filters_let_us_call(const ProcStatus& status, bool launched) {
  if (status.seccomp == SECCOMP_MODE_DISABLED) return true;
  if (status.seccomp != SECCOMP_MODE_FILTER || !launched || !status.seccomp_filters) return false;
  static const std::optional<int> ours = own_filters();
  return status.seccomp_filters == ours;
}

}  // namespace backtrail::tracee::cache
