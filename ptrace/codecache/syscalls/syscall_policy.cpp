// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/syscalls/syscall_policy.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <tuple>

#include <fcntl.h>
#include <linux/prctl.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/syscall.h>

#include "arch/base/page.hpp"
#include "arch/cpu/syscall_abi.hpp"
#include "arch/insn.hpp"

namespace backtrail::tracee::cache {
namespace translate = arch::cpu::translate;
namespace {

using translate::CallCheck;
using translate::Policy;
using translate::PolicyRange;

constexpr long kPidfdGetfd = 438;      // SYS_pidfd_getfd
constexpr long kProcessMadvise = 440;  // SYS_process_madvise

constexpr std::array kInline{
    SYS_read,
    SYS_close,
    SYS_stat,
    SYS_fstat,
    SYS_lstat,
    SYS_poll,
    SYS_lseek,
    SYS_brk,
    SYS_ioctl,
    SYS_pread64,
    SYS_readv,
    SYS_access,
    SYS_pipe,
    SYS_select,
    SYS_sched_yield,
    SYS_mincore,
    SYS_dup,
    SYS_dup2,
    SYS_nanosleep,
    SYS_getitimer,
    SYS_getpid,
    SYS_socket,
    SYS_connect,
    SYS_accept,
    SYS_sendto,
    SYS_recvfrom,
    SYS_sendmsg,
    SYS_recvmsg,
    SYS_shutdown,
    SYS_bind,
    SYS_listen,
    SYS_getsockname,
    SYS_getpeername,
    SYS_socketpair,
    SYS_setsockopt,
    SYS_getsockopt,
    SYS_uname,
    SYS_fcntl,
    SYS_flock,
    SYS_fsync,
    SYS_fdatasync,
    SYS_ftruncate,
    SYS_getdents,
    SYS_getcwd,
    SYS_chdir,
    SYS_fchdir,
    SYS_rename,
    SYS_mkdir,
    SYS_rmdir,
    SYS_link,
    SYS_unlink,
    SYS_symlink,
    SYS_readlink,
    SYS_chmod,
    SYS_fchmod,
    SYS_umask,
    SYS_gettimeofday,
    SYS_getrusage,
    SYS_sysinfo,
    SYS_times,
    SYS_getuid,
    SYS_getgid,
    SYS_geteuid,
    SYS_getegid,
    SYS_getppid,
    SYS_getpgrp,
    SYS_statfs,
    SYS_fstatfs,
    SYS_gettid,
    SYS_time,
    SYS_futex,
    SYS_getdents64,
    SYS_fadvise64,
    SYS_clock_gettime,
    SYS_clock_getres,
    SYS_clock_nanosleep,
    SYS_epoll_wait,
    SYS_epoll_ctl,
    SYS_mkdirat,
    SYS_newfstatat,
    SYS_unlinkat,
    SYS_renameat,
    SYS_linkat,
    SYS_symlinkat,
    SYS_readlinkat,
    SYS_faccessat,
    SYS_eventfd,
    SYS_fallocate,
    SYS_accept4,
    SYS_eventfd2,
    SYS_epoll_create1,
    SYS_dup3,
    SYS_pipe2,
    SYS_preadv,
    SYS_getcpu,
    SYS_getrandom,
    SYS_statx,
    SYS_faccessat2,
    SYS_utimensat,
    SYS_set_tid_address,
    SYS_set_robust_list,
    SYS_wait4,
    SYS_waitid,
    SYS_sigaltstack,
    SYS_setpgid,
    SYS_getpgid,
    SYS_getsid,
    SYS_alarm,
    SYS_setitimer,
    SYS_fchown,
    SYS_chown,
    SYS_lchown,
    SYS_fchownat,
    SYS_fchmodat,
    SYS_mknod,
    SYS_mknodat,
    SYS_utime,
    SYS_utimes,
    SYS_futimesat,
    SYS_getxattr,
    SYS_lgetxattr,
    SYS_fgetxattr,
    SYS_listxattr,
    SYS_llistxattr,
    SYS_flistxattr,
    SYS_setxattr,
    SYS_lsetxattr,
    SYS_fsetxattr,
    SYS_removexattr,
    SYS_lremovexattr,
    SYS_fremovexattr,
    SYS_renameat2,
    SYS_sync,
    SYS_syncfs,
    SYS_sync_file_range,
    SYS_msync,
    SYS_readahead,
    SYS_tee,
    SYS_semget,
    SYS_semop,
    SYS_semtimedop,
    SYS_semctl,
    SYS_shmget,
    SYS_msgget,
    SYS_msgsnd,
    SYS_msgrcv,
    SYS_msgctl,
    SYS_mq_timedsend,
    SYS_mq_timedreceive,
    SYS_timerfd_create,
    SYS_timerfd_settime,
    SYS_timerfd_gettime,
    SYS_timer_settime,
    SYS_timer_gettime,
    SYS_timer_getoverrun,
    SYS_epoll_create,
    SYS_inotify_init,
    SYS_inotify_init1,
    SYS_inotify_add_watch,
    SYS_inotify_rm_watch,
    SYS_signalfd,
    SYS_signalfd4,
    SYS_sendmmsg,
    SYS_recvmmsg,
    SYS_preadv2,
    SYS_getpriority,
    SYS_setpriority,
    SYS_sched_getscheduler,
    SYS_sched_getparam,
    SYS_getgroups,
    SYS_getresuid,
    SYS_getresgid,
    SYS_capget,
    SYS_memfd_create,
    SYS_process_vm_readv,
};

/// Calls that write to a file, which may be the memory of a process.
constexpr std::array kWriting{SYS_write,    SYS_pwrite64, SYS_writev, SYS_pwritev,
                              SYS_pwritev2, SYS_sendfile, SYS_splice, SYS_copy_file_range};

constexpr std::uint64_t kUserDispatch = 59;      // PR_SET_SYSCALL_USER_DISPATCH
constexpr std::uint64_t kDenyWriteExecute = 65;  // PR_SET_MDWE

/// End of user space, plus a page.
constexpr TraceeAddr kEnd{1ULL << 57};

MappingChange pages(std::uint64_t begin, std::uint64_t bytes, bool new_code) {
  const std::uint64_t end = begin + bytes;
  if (end < begin || end > kEnd.value() - kPageBytes) return {TraceeAddr{}, kEnd, true};
  return {TraceeAddr{page_begin(begin)}, TraceeAddr{round_up_to_pages(end)}, new_code};
}

/// Returns true if advice changes no contents of memory.
bool keeps_contents(int advice) {
  constexpr std::array kHarmless{MADV_NORMAL,   MADV_RANDOM,     MADV_SEQUENTIAL, MADV_WILLNEED,
                                 MADV_DONTFORK, MADV_DOFORK,     MADV_MERGEABLE,  MADV_UNMERGEABLE,
                                 MADV_HUGEPAGE, MADV_NOHUGEPAGE, MADV_DONTDUMP,   MADV_DODUMP};
  return std::ranges::find(kHarmless, advice) != kHarmless.end();
}

/// Judges by the low byte of open()'s flags. A file that the call creates (O_EXCL) is no code yet.
bool may_open_existing_to_write(std::uint64_t flags) {
  constexpr std::uint64_t kMakesIt = O_CREAT | O_EXCL;
  return (flags & O_ACCMODE) != O_RDONLY && (flags & kMakesIt) != kMakesIt;
}

/// Judges by the second byte of open()'s flags. Opening read-only may truncate a file, too.
bool may_truncate(std::uint64_t flags) {
  constexpr std::uint64_t kByteBits = 8;
  return (flags << kByteBits & O_TRUNC) != 0;
}

void store(std::uint64_t& where, std::uint64_t value) {
  __atomic_store_n(&where, value, __ATOMIC_RELEASE);
}

/// Writes the ranges while threads may read them. The first range covers everything while the
/// others change, and for good if they do not fit; otherwise it is empty.
void write_ranges(const ExecutableMap& map, std::span<const ExecutableMap::Part> ours,
                  std::span<std::uint8_t> bytes) {
  void* first = bytes.data();
  const std::span ranges{static_cast<PolicyRange*>(first), translate::kPolicyRanges};
  store(ranges[0].negated_end, 0 - kEnd.value());
  store(ranges[0].negated_begin, ~std::uint64_t{0});
  std::size_t count = 1;
  for (const std::span<const ExecutableMap::Part> parts : {std::span{map.everything()}, ours}) {
    for (const auto& [begin, end] : parts) {
      if (count + 1 == ranges.size()) return;
      store(ranges[count].negated_end, 0 - end.value());
      store(ranges[count].negated_begin, 0 - begin.value());
      ++count;
    }
  }
  store(ranges[count].negated_begin, 0);
  store(ranges[0].negated_end, 0);
}

}  // namespace

MappingChange mapping_change_of(const arch::cpu::UserRegs& regs) {
  const std::uint64_t address = syscall_argument(regs, 0);
  const std::uint64_t bytes = syscall_argument(regs, 1);
  const bool executable = (syscall_argument(regs, 2) & PROT_EXEC) != 0;
  switch (syscall_number(regs)) {
    case SYS_mmap: {
      const std::uint64_t flags = syscall_argument(regs, 3);
      const bool placed = (flags & (MAP_FIXED | MAP_FIXED_NOREPLACE | MAP_GROWSDOWN)) != 0;
      return placed ? pages(address, bytes, executable) : MappingChange{{}, {}, executable};
    }
    case SYS_mprotect:
    case SYS_pkey_mprotect: {
      MappingChange change = pages(address, bytes, executable);
      change.lets_write = (syscall_argument(regs, 2) & PROT_WRITE) != 0;
      change.keeps_contents = !change.lets_write;
      return change;
    }
    case SYS_madvise: {
      MappingChange change = pages(address, bytes, false);
      const auto advice = static_cast<int>(syscall_argument(regs, 2));
      change.keeps_contents = keeps_contents(advice);
      change.leaves_out_children = advice == MADV_DONTFORK;
      return change;
    }
    case SYS_munmap:
    case SYS_remap_file_pages:
      return pages(address, bytes, false);
    case SYS_mremap: {
      MappingChange change = pages(address, bytes, false);
      if ((syscall_argument(regs, 3) & MREMAP_FIXED) == 0) return change;
      const MappingChange to = pages(syscall_argument(regs, 4), syscall_argument(regs, 2), true);
      change.new_code = true;
      change.other_begin = to.begin;
      change.other_end = to.end;
      return change;
    }
    case SYS_shmat:
    case SYS_shmdt: {
      const bool replaces =
          syscall_number(regs) == SYS_shmat && (syscall_argument(regs, 2) & SHM_REMAP) != 0;
      return {.begin = TraceeAddr{}, .end = kEnd, .new_code = true, .keeps_contents = !replaces};
    }
    case SYS_arch_prctl:
    case SYS_personality:
      return {{}, {}, true};
    default:
      break;
  }
  return any_mapping_change();
}

MappingChange any_mapping_change() {
  return {TraceeAddr{}, kEnd, true};
}

bool is_call_of_other_form(arch::Isa isa, TraceeAddr pc, std::span<const std::uint8_t> code) {
  if (isa != arch::Isa::kAmd64 || arch::cpu::is_syscall(code)) return false;
  return arch::cpu::has_syscall_opcode(code) &&
         arch::decode_insn(isa, pc, code).kind == arch::InsnKind::kSystemCall;
}

const arch::cpu::translate::InlineSystemCalls& inline_system_calls() {
  static const arch::cpu::translate::InlineSystemCalls calls = [] {
    arch::cpu::translate::InlineSystemCalls made;
    for (const auto number : kInline)
      made.at(static_cast<std::size_t>(number)) = CallCheck::kAlways;
    made[SYS_mmap] = CallCheck::kMap;
    made[SYS_mprotect] = CallCheck::kProtect;
    made[SYS_munmap] = CallCheck::kRange;
    made[SYS_madvise] = CallCheck::kRange;
    for (const auto number : kWriting)
      made.at(static_cast<std::size_t>(number)) = CallCheck::kWrite;
    made[SYS_rseq] = CallCheck::kRseq;
    made[SYS_ptrace] = CallCheck::kTrace;
    made[SYS_open] = CallCheck::kOpen;
    made[SYS_openat] = CallCheck::kOpenAt;
    made[SYS_rt_sigaction] = CallCheck::kAction;
    made[SYS_rt_sigprocmask] = CallCheck::kSignalMask;
    made[SYS_rt_sigreturn] = CallCheck::kReturn;
    for (const auto number : {SYS_kill, SYS_tkill, SYS_tgkill, SYS_rt_sigqueueinfo,
                              SYS_rt_tgsigqueueinfo, SYS_rt_sigpending}) {
      made.at(static_cast<std::size_t>(number)) = CallCheck::kSignals;
    }
    made[SYS_arch_prctl] = CallCheck::kThreadBase;
    made[SYS_getrlimit] = CallCheck::kLimit;
    made[SYS_prlimit64] = CallCheck::kLimits;
    made[SYS_ppoll] = CallCheck::kNullFourth;
    made[SYS_epoll_pwait] = CallCheck::kNullFifth;
    made[SYS_epoll_pwait2] = CallCheck::kNullFifth;
    made[SYS_pselect6] = CallCheck::kNullSixth;
    return made;
  }();
  return calls;
}

void write_policy(const ExecutableMap& map, std::span<const ExecutableMap::Part> ours,
                  std::span<std::uint8_t> policy) {
  const auto part = [&](Policy which, std::size_t bytes) {
    return policy.subspan(static_cast<std::size_t>(which), bytes);
  };
  const auto protections = part(Policy::kProtections, 256);
  const auto flags = part(Policy::kMapFlags, 256);
  const auto segv = part(Policy::kSegvBit, 256);
  const auto traced = part(Policy::kTrapFlag, 256);
  for (std::size_t i = 0; i < protections.size(); ++i) {
    protections[i] = (i & PROT_EXEC) != 0 ? 1 : 0;
    flags[i] = (i & MAP_FIXED) != 0 ? 1 : 0;
    segv[i] = static_cast<std::uint8_t>(i >> (SIGSEGV - 9) & 1);
    traced[i] = static_cast<std::uint8_t>(i & 1U);
  }
  write_ranges(map, ours, part(Policy::kRanges, translate::kPolicyRanges * sizeof(PolicyRange)));
}

void write_opens(std::span<std::uint8_t> policy) {
  constexpr std::size_t kFlags = 256;
  const auto open = policy.subspan(static_cast<std::size_t>(Policy::kOpenFlags), kFlags);
  const auto truncate = policy.subspan(static_cast<std::size_t>(Policy::kOpenFlags2), kFlags);
  for (std::size_t i = 0; i < kFlags; ++i) {
    open[i] = may_open_existing_to_write(i) ? 1 : 0;
    truncate[i] = may_truncate(i) ? 1 : 0;
  }
}

void write_numbers(const arch::cpu::translate::InlineSystemCalls& calls, bool watches_writes,
                   std::span<std::uint8_t> policy) {
  static_assert(static_cast<std::size_t>(Policy::kNumbers) +
                    std::tuple_size_v<arch::cpu::translate::InlineSystemCalls> <=
                static_cast<std::size_t>(Policy::kNumberHigh));
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const bool made =
        calls.at(i) == CallCheck::kAlways || (calls.at(i) == CallCheck::kWrite && !watches_writes);
    policy[static_cast<std::size_t>(Policy::kNumbers) + i] = made ? 0 : 1;
  }
  constexpr std::size_t kHigh = 256;
  for (std::size_t i = 0; i < kHigh; ++i) {
    policy[static_cast<std::size_t>(Policy::kWatchedFiles) + i] = watches_writes ? 1 : 0;
  }
  for (std::size_t i = 0; i < kHigh; ++i) {
    policy[static_cast<std::size_t>(Policy::kNumberHigh) + i] = i << 8U < calls.size() ? 0 : 1;
  }
}

std::optional<LimitCall> limit_call_of(const arch::cpu::UserRegs& regs) {
  const auto number = syscall_number(regs);
  const bool is_prlimit = number == SYS_prlimit64;
  // The kernel uses 32 bits of both.
  const auto resource = static_cast<std::uint32_t>(syscall_argument(regs, is_prlimit ? 1 : 0));
  if (resource != RLIMIT_AS) return std::nullopt;
  LimitCall call;
  switch (number) {
    case SYS_getrlimit:
      call.old_at = TraceeAddr{syscall_argument(regs, 1)};
      return call;
    case SYS_setrlimit:
      call.new_at = TraceeAddr{syscall_argument(regs, 1)};
      call.new_in = 1;
      return call;
    case SYS_prlimit64:
      call.process = static_cast<std::int32_t>(syscall_argument(regs, 0));
      call.new_at = TraceeAddr{syscall_argument(regs, 2)};
      call.new_in = 2;
      call.old_at = TraceeAddr{syscall_argument(regs, 3)};
      return call;
    default:
      return std::nullopt;
  }
}

std::optional<bool> keeps_core(const arch::cpu::UserRegs& regs) {
  const bool says = syscall_number(regs) == SYS_prctl &&
                    syscall_argument(regs, 0) == PR_SET_DUMPABLE && syscall_argument(regs, 1) <= 1;
  return says ? std::optional{syscall_argument(regs, 1) == 1} : std::nullopt;
}

SyscallEffect effect_of(const arch::cpu::UserRegs& regs) {
  const std::uint64_t first = syscall_argument(regs, 0);
  const std::uint64_t second = syscall_argument(regs, 1);
  const auto number = syscall_number(regs);
  switch (number) {
    case SYS_mmap: {
      const bool plain = (syscall_argument(regs, 2) & PROT_EXEC) == 0 &&
                         (syscall_argument(regs, 3) & (MAP_FIXED | MAP_GROWSDOWN)) == 0;
      return plain ? SyscallEffect::kNone : SyscallEffect::kMappings;
    }
    case SYS_munmap:
    case SYS_mprotect:
    case SYS_mremap:
    case SYS_pkey_mprotect:
    case SYS_shmat:
    case SYS_shmdt:
    case SYS_remap_file_pages:
    case SYS_madvise:
    case kProcessMadvise:
    case SYS_personality:
    case SYS_arch_prctl:
      return SyscallEffect::kMappings;
    case SYS_truncate:
      return SyscallEffect::kTruncates;
    case SYS_open:
    case SYS_openat:
    case SYS_openat2:
    case SYS_creat:
    case SYS_open_by_handle_at:
    case kPidfdGetfd:
      return SyscallEffect::kOpens;
    case SYS_write:
    case SYS_pwrite64:
    case SYS_writev:
    case SYS_pwritev:
    case SYS_pwritev2:
    case SYS_sendfile:
    case SYS_splice:
    case SYS_copy_file_range:
      return SyscallEffect::kWrites;
    case SYS_process_vm_writev:
      return SyscallEffect::kWritesMemory;
    case SYS_io_setup:
    case SYS_io_uring_setup:
    case SYS_userfaultfd:
      return SyscallEffect::kWritesLater;
    case SYS_ptrace:
      return first == PTRACE_TRACEME || first == PTRACE_ATTACH || first == PTRACE_SEIZE
                 ? SyscallEffect::kTraces
                 : SyscallEffect::kNone;
    case SYS_seccomp:
      if (first == SECCOMP_SET_MODE_FILTER) return SyscallEffect::kFilter;
      // All other arguments make the call fail.
      return first == SECCOMP_SET_MODE_STRICT && second == 0 && syscall_argument(regs, 2) == 0
                 ? SyscallEffect::kSandbox
                 : SyscallEffect::kNone;
    case SYS_prctl:
      if (first == PR_SET_SECCOMP && second == SECCOMP_MODE_FILTER) return SyscallEffect::kFilter;
      return first == PR_SET_SECCOMP || first == kUserDispatch ? SyscallEffect::kSandbox
                                                               : SyscallEffect::kNone;
    case SYS_getrlimit:
    case SYS_setrlimit:
    case SYS_prlimit64:
      return limit_call_of(regs) ? SyscallEffect::kAddressLimit : SyscallEffect::kNone;
    case SYS_mlockall:
      return (first & MCL_CURRENT) != 0 ? SyscallEffect::kLocksAll : SyscallEffect::kNone;
    case SYS_rt_sigaction:
      return first == SIGSEGV && second != 0 ? SyscallEffect::kSegvAction : SyscallEffect::kNone;
    default:
      return SyscallEffect::kNone;
  }
}

WriteEffect write_effect_of(const arch::cpu::UserRegs& regs) {
  switch (syscall_number(regs)) {
    case SYS_readv:
    case SYS_preadv:
    case SYS_preadv2:
    case SYS_recvmsg:
    case SYS_recvmmsg:
    case SYS_process_vm_readv:
    case SYS_process_vm_writev:
      return WriteEffect::kBuffers;
    case SYS_fork:
    case SYS_vfork:
    case SYS_clone:
    case SYS_clone3:
      return WriteEffect::kClone;
    case SYS_prctl:
      // Memory that is not writable must remain so (PR_SET_MDWE).
      return syscall_argument(regs, 0) == kDenyWriteExecute ? WriteEffect::kAnyTime
                                                            : WriteEffect::kArguments;
    // Memory that becomes writable counts against this limit.
    case SYS_setrlimit:
      return static_cast<std::uint32_t>(syscall_argument(regs, 0)) == RLIMIT_DATA
                 ? WriteEffect::kAnyTime
                 : WriteEffect::kArguments;
    case SYS_prlimit64:
      return static_cast<std::uint32_t>(syscall_argument(regs, 1)) == RLIMIT_DATA &&
                     syscall_argument(regs, 2) != 0
                 ? WriteEffect::kAnyTime
                 : WriteEffect::kArguments;
    case SYS_io_setup:
    case SYS_io_uring_setup:
    case SYS_userfaultfd:
      return WriteEffect::kAnyTime;
    default:
      return WriteEffect::kArguments;
  }
}

}  // namespace backtrail::tracee::cache
