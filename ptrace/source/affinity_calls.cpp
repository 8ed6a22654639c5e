// SPDX-License-Identifier: Apache-2.0
#include "ptrace/source/affinity_calls.hpp"

#include <algorithm>
#include <array>
#include <climits>
#include <span>
#include <string>
#include <string_view>

#include <sys/syscall.h>

#include "arch/base/page.hpp"
#include "arch/cpu/syscall_abi.hpp"
#include "ptrace/tracee/process.hpp"
#include "ptrace/tracee/thread.hpp"

namespace backtrail::tracee {
namespace {

/// Set in the numbers of x32's calls (asm/unistd.h).
constexpr std::uint64_t kX32Bit = 0x4000'0000;

/// Returns the end of the path at `path`, as far as it can be read.
std::string end_of_path(Process& process, TraceeAddr path, std::size_t wanted) {
  std::string end;
  std::array<std::uint8_t, 64> piece{};
  for (std::size_t done = 0; done < PATH_MAX;) {
    // The rest of the page may be unreadable.
    const std::size_t in_page = kPageBytes - (path + done).value() % kPageBytes;
    const std::span part = std::span{piece}.first(std::min(piece.size(), in_page));
    if (process.read_memory(path + done, part) != part.size()) break;
    const auto nul = std::find(part.begin(), part.end(), 0);
    end.append(part.begin(), nul);
    if (end.size() > wanted) end.erase(0, end.size() - wanted);
    if (nul != part.end()) break;
    done += part.size();
  }
  return end;
}

/// Returns true for an open() of /proc/PID/status, by any path: proc_pid_status(5), Cpus_allowed.
bool opens_status(Process& process, const arch::cpu::UserRegs& regs) {
  constexpr std::string_view kFile = "status";
  TraceeAddr path;
  switch (syscall_number(regs)) {
    case SYS_open:
      path = TraceeAddr{syscall_argument(regs, 0)};
      break;
    case SYS_openat:
    case SYS_openat2:
      path = TraceeAddr{syscall_argument(regs, 1)};
      break;
    default:
      return false;
  }
  return end_of_path(process, path, kFile.size()) == kFile;
}

}  // namespace

bool concerns_affinity(std::uint64_t call) {
  if ((call & kX32Bit) != 0) return true;
  switch (call) {
    case SYS_sched_getaffinity:
    case SYS_sched_setaffinity:
    case SYS_sched_setattr:  // SCHED_DEADLINE wants all CPUs
    // Threads, processes and programs inherit it.
    case SYS_clone:
    case SYS_clone3:
    case SYS_fork:
    case SYS_vfork:
    case SYS_execve:
    case SYS_execveat:
    // Another user's thread may be out of reach (sched_setaffinity(2), EPERM).
    case SYS_setuid:
    case SYS_setreuid:
    case SYS_setresuid:
      return true;
    default:
      return false;
  }
}

void show_own_affinity(Process& process, Thread& thread) {
  const auto regs = thread.user_regs();
  if (!regs) return;
  // The numbers of i386's calls are others.
  const bool amd64 =
      process.isa() == arch::Isa::kAmd64 && arch::cpu::is_syscall(process.insn_bytes(regs->pc()));
  const bool opens = amd64 && opens_status(process, *regs);
  if (opens) process.own_affinity.note_file();
  if (amd64 && !opens && !concerns_affinity(syscall_number(*regs))) return;
  process.own_affinity.begin_call(thread.tid());
  for (const auto& each : process.threads()) each->cpu_pin()->release();
}

}  // namespace backtrail::tracee
