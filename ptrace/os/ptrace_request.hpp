// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// ptrace(2), one typed function per request. The only code that calls ::ptrace.
///
/// All requests must come from the thread that attached. Unless stated otherwise, the tracee must
/// be in a ptrace stop. ESRCH becomes TraceErrc::kTraceeGone; it means that the tracee is gone or,
/// indistinguishably, not stopped. Other errors carry the errno. Error::detail is the tid.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <sys/types.h>
#include <csignal>

#include "arch/base/result.hpp"
#include "arch/cpu/registers.hpp"

namespace backtrail::tracee::request {

/// Attaches without stopping the thread. `options` is a mask of PTRACE_O_*.
Result<void> seize(pid_t tid, unsigned long options);
Result<void> set_options(pid_t tid, unsigned long options);
/// Stops a running seized thread (PTRACE_EVENT_STOP follows). The thread need not be stopped.
Result<void> interrupt(pid_t tid);

/// Returns true if a stop or the end of the thread waits to be collected.
[[nodiscard]] bool has_news(pid_t tid);

/// Resumes and delivers `signal` (0 = none); a signal takes effect only after a signal stop. Does
/// nothing if a new stop or the end of the thread waits to be collected, as after SIGKILL.
Result<void> cont(pid_t tid, int signal = 0);
/// Executes one instruction.
Result<void> step(pid_t tid, int signal = 0);
/// Runs to the next entry to or return from a system call.
Result<void> cont_syscall(pid_t tid, int signal = 0);
/// Keeps a group stop in force but still reports SIGCONT and PTRACE_INTERRUPT.
Result<void> listen(pid_t tid);
/// Detaches and delivers `signal`.
Result<void> detach(pid_t tid, int signal = 0);

/// General registers (PTRACE_GETREGS, PTRACE_SETREGS). Threads of 32-bit processes appear in the
/// 64-bit form.
Result<arch::cpu::UserRegs> read_user_regs(pid_t tid);
Result<void> write_user_regs(pid_t tid, const arch::cpu::UserRegs& regs);

/// Reads one register (PTRACE_PEEKUSER), one of the cheapest ptrace requests.
Result<std::uint64_t> peek_user_reg(pid_t tid, arch::cpu::UserReg reg);
Result<void> poke_user_reg(pid_t tid, arch::cpu::UserReg reg, std::uint64_t value);
/// Reads the program counter only.
Result<TraceeAddr> peek_pc(pid_t tid);

/// Reads the XSAVE area (NT_X86_XSTATE), or the 512-byte FXSAVE area on CPUs without XSAVE.
Result<std::vector<std::uint8_t>> read_xstate(pid_t tid);
/// Writes the state; `bytes` has the form that read_xstate() returns.
Result<void> write_xstate(pid_t tid, std::span<const std::uint8_t> bytes);

/// Reads the general registers and the vector state.
Result<arch::cpu::RawRegisters> read_registers(pid_t tid);
/// Writes both; leaves the vector state unchanged if `regs.xsave` is empty.
Result<void> write_registers(pid_t tid, const arch::cpu::RawRegisters& regs);

/// DR0-DR3, DR6, DR7 by `number` (0-7). Error kInvalidArgument for other numbers.
Result<std::uint64_t> read_debug_register(pid_t tid, unsigned number);
/// Further errors: EINVAL for an address outside user space, ENOSPC if no slot is free.
Result<void> write_debug_register(pid_t tid, unsigned number, std::uint64_t value);

/// The siginfo of a signal stop, in the 64-bit layout. EINVAL in stops without a signal.
Result<siginfo_t> read_siginfo(pid_t tid);
Result<void> write_siginfo(pid_t tid, const siginfo_t& info);

/// Returns the signals pending for this thread alone, at most 32, oldest first
/// (PTRACE_PEEKSIGINFO).
Result<std::vector<siginfo_t>> pending_signals(pid_t tid);

/// The set of blocked signals; bit n-1 = signal n.
Result<std::uint64_t> read_signal_mask(pid_t tid);
Result<void> write_signal_mask(pid_t tid, std::uint64_t mask);

/// PTRACE_GETEVENTMSG: a new tid, a former tid or an exit status, depending on the event.
Result<unsigned long> event_message(pid_t tid);

enum class SyscallPhase : std::uint8_t { kNone, kEntry, kExit, kSeccomp };
/// Where a thread is relative to a system call.
struct SyscallInfo {
  SyscallPhase phase = SyscallPhase::kNone;
  std::uint32_t audit_arch = 0;  ///< AUDIT_ARCH_X86_64 or AUDIT_ARCH_I386.
  std::uint64_t pc = 0;
  std::uint64_t number = 0;         ///< In kEntry and kSeccomp.
  std::uint64_t arguments[6] = {};  ///< In kEntry and kSeccomp.
  std::int64_t return_value = 0;    ///< In kExit.
  bool is_error = false;            ///< In kExit.
};
/// PTRACE_GET_SYSCALL_INFO (Linux 5.3). Error kUnsupported on older kernels.
Result<SyscallInfo> syscall_info(pid_t tid);

/// Reads one word of memory whatever the page's protection. For use where /proc/TID/mem fails.
Result<std::uint64_t> peek_data(pid_t tid, TraceeAddr address);
Result<void> poke_data(pid_t tid, TraceeAddr address, std::uint64_t word);

/// A thread's struct rseq, which the kernel writes at its own times.
struct RseqArea {
  TraceeAddr address;  ///< 0: none.
  std::uint32_t bytes = 0;
};
/// Returns the thread's area (PTRACE_GET_RSEQ_CONFIGURATION, Linux 5.13). Fails on older kernels.
Result<RseqArea> rseq_area(pid_t tid);

/// Base of a 32-bit TLS segment by GDT index (PTRACE_GET_THREAD_AREA).
Result<std::uint64_t> thread_area_base(pid_t tid, int gdt_index);

}  // namespace backtrail::tracee::request
