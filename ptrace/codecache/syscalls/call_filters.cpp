// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/syscalls/call_filters.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>

#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arch/base/page.hpp"
#include "ptrace/tracee/process.hpp"

namespace backtrail::tracee::cache {
namespace translate = arch::cpu::translate;
namespace {

constexpr std::uint64_t kSigsetBytes = 8;

/// Makes the recorder's calls. Runs in a child process, because a filter may kill for them.
bool makes_our_calls() {
  const auto file =
      static_cast<int>(::syscall(SYS_memfd_create, "backtrail", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (file < 0 || ::ftruncate(file, kPageBytes) != 0) return false;
  void* code = ::mmap(nullptr, kPageBytes, PROT_READ | PROT_EXEC, MAP_SHARED, file, 0);
  if (code == MAP_FAILED || ::madvise(code, kPageBytes, MADV_DONTFORK) != 0 ||
      ::mprotect(code, kPageBytes, PROT_NONE) != 0 || ::munmap(code, kPageBytes) != 0) {
    return false;
  }
  struct sigaction action {};
  return ::sigaction(SIGSEGV, nullptr, &action) == 0 &&
         ::sigprocmask(SIG_BLOCK, nullptr, nullptr) == 0;
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

/// Returns the number of filters on this process; nullopt if they forbid too much or cannot be
/// counted.
std::optional<int> own_filters() {
  const auto status = ProcFs{}.status(::getpid());
  if (!status || !status->seccomp_filters || !lets_a_child_call()) return std::nullopt;
  return status->seccomp_filters;
}

}  // namespace

bool filters_are_known(const ProcStatus& status, bool launched, std::size_t own) {
  if (status.seccomp == SECCOMP_MODE_DISABLED) return true;
  if (status.seccomp != SECCOMP_MODE_FILTER || !launched || !status.seccomp_filters) return false;
  static const std::optional<int> ours = own_filters();
  return ours && *status.seccomp_filters <= *ours + static_cast<int>(own);
}

std::string why_not_behind(const SeccompFilters& filters) {
  if (filters.empty()) return {};
  if (filters.look_at_place()) return "a seccomp filter looks at where system calls are made";
  // If the signal of a full log is blocked or ignored, its action must be restored afterwards.
  const bool puts_back =
      filters.allow(system_call(SYS_rt_sigaction, {SIGSEGV, 0, kPageBytes, kSigsetBytes})) &&
      filters.allow(system_call(SYS_rt_sigaction, {SIGSEGV, kPageBytes, 0, kSigsetBytes}));
  return puts_back ? "" : "a seccomp filter forbids rt_sigaction";
}

bool let_threads_stop(const SeccompFilters& filters) {
  return filters.always_allow(SYS_rt_sigprocmask);
}

bool allow_protected_pages(const SeccompFilters& filters) {
  constexpr std::uint64_t kProtected = PROT_READ | PROT_EXEC;
  return filters.allow(system_call(SYS_mprotect, {kPageBytes, kPageBytes, kProtected})) &&
         filters.allow(
             system_call(SYS_mprotect, {kPageBytes, kPageBytes, kProtected | PROT_WRITE}));
}

void restrict_inline_calls(arch::cpu::translate::InlineSystemCalls& calls,
                           const SeccompFilters& filters) {
  for (std::size_t number = 0; number < calls.size(); ++number) {
    if (!filters.always_allow(static_cast<std::uint32_t>(number))) {
      calls.at(number) = translate::CallCheck::kNever;
    }
  }
  const bool usual_futexes = std::all_of(
      translate::kUsualFutexes.begin(), translate::kUsualFutexes.end(),
      [&](std::uint32_t operation) { return filters.always_allow(SYS_futex, operation); });
  if (calls[SYS_futex] == translate::CallCheck::kNever && usual_futexes) {
    calls[SYS_futex] = translate::CallCheck::kUsualFutex;
  }
}

std::optional<SeccompFilter> read_filter(Process& process, TraceeAddr at) {
  std::array<std::uint8_t, sizeof(sock_fprog)> bytes{};
  if (process.read_memory(at, bytes) != bytes.size()) return std::nullopt;
  const auto header = std::bit_cast<sock_fprog>(bytes);
  std::vector<std::uint8_t> insns(header.len * sizeof(sock_filter));
  const TraceeAddr begin{std::bit_cast<std::uint64_t>(header.filter)};
  if (insns.empty() || process.read_memory(begin, insns) != insns.size()) return std::nullopt;
  std::vector<sock_filter> program(header.len);
  std::memcpy(program.data(), insns.data(), insns.size());
  if (BPF_CLASS(program.back().code) != BPF_RET) return std::nullopt;
  return SeccompFilter{std::move(program)};
}

}  // namespace backtrail::tracee::cache
