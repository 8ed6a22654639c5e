// SPDX-License-Identifier: Apache-2.0
#include "ptrace/os/ptrace_request.hpp"

#include <array>
#include <bit>
#include <cerrno>
#include <cstring>

#include <asm/ldt.h>
#include <elf.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>

namespace backtrail::tracee::request {
namespace {

using arch::cpu::UserReg;
using arch::cpu::UserRegs;

// UserRegs is handed to the kernel as a user_regs_struct.
static_assert(sizeof(UserRegs::words) == sizeof(user_regs_struct));
template <UserReg kReg>
constexpr std::size_t kOffset = static_cast<std::size_t>(kReg) * sizeof(std::uint64_t);
static_assert(kOffset<UserReg::kR15> == offsetof(user_regs_struct, r15));
static_assert(kOffset<UserReg::kR14> == offsetof(user_regs_struct, r14));
static_assert(kOffset<UserReg::kR13> == offsetof(user_regs_struct, r13));
static_assert(kOffset<UserReg::kR12> == offsetof(user_regs_struct, r12));
static_assert(kOffset<UserReg::kRbp> == offsetof(user_regs_struct, rbp));
static_assert(kOffset<UserReg::kRbx> == offsetof(user_regs_struct, rbx));
static_assert(kOffset<UserReg::kR11> == offsetof(user_regs_struct, r11));
static_assert(kOffset<UserReg::kR10> == offsetof(user_regs_struct, r10));
static_assert(kOffset<UserReg::kR9> == offsetof(user_regs_struct, r9));
static_assert(kOffset<UserReg::kR8> == offsetof(user_regs_struct, r8));
static_assert(kOffset<UserReg::kRax> == offsetof(user_regs_struct, rax));
static_assert(kOffset<UserReg::kRcx> == offsetof(user_regs_struct, rcx));
static_assert(kOffset<UserReg::kRdx> == offsetof(user_regs_struct, rdx));
static_assert(kOffset<UserReg::kRsi> == offsetof(user_regs_struct, rsi));
static_assert(kOffset<UserReg::kRdi> == offsetof(user_regs_struct, rdi));
static_assert(kOffset<UserReg::kOrigRax> == offsetof(user_regs_struct, orig_rax));
static_assert(kOffset<UserReg::kRip> == offsetof(user_regs_struct, rip));
static_assert(kOffset<UserReg::kCs> == offsetof(user_regs_struct, cs));
static_assert(kOffset<UserReg::kEflags> == offsetof(user_regs_struct, eflags));
static_assert(kOffset<UserReg::kRsp> == offsetof(user_regs_struct, rsp));
static_assert(kOffset<UserReg::kSs> == offsetof(user_regs_struct, ss));
static_assert(kOffset<UserReg::kFsBase> == offsetof(user_regs_struct, fs_base));
static_assert(kOffset<UserReg::kGsBase> == offsetof(user_regs_struct, gs_base));
static_assert(kOffset<UserReg::kDs> == offsetof(user_regs_struct, ds));
static_assert(kOffset<UserReg::kEs> == offsetof(user_regs_struct, es));
static_assert(kOffset<UserReg::kFs> == offsetof(user_regs_struct, fs));
static_assert(kOffset<UserReg::kGs> == offsetof(user_regs_struct, gs));
static_assert(offsetof(user, regs) == 0, "PTRACE_PEEKUSER takes register offsets as they are");

// The declaration has pointers for ptrace's third and fourth arguments; many requests use numbers.
void* number_argument(std::uint64_t value) {
  return std::bit_cast<void*>(value);
}

Error request_error(const char* operation, pid_t tid) {
  const auto detail = static_cast<std::uint64_t>(tid);
  return errno == ESRCH ? make_error(TraceErrc::kTraceeGone, operation, detail)
                        : errno_error(operation, detail);
}

Result<void> request(__ptrace_request what, const char* operation, pid_t tid, void* address,
                     void* data) {
  if (::ptrace(what, tid, address, data) == -1) return fail(request_error(operation, tid));
  return {};
}

/// Resumes, unless SIGKILL has already moved the thread from its stop to the one at its end: that
/// stop must not be passed over.
Result<void> resume(__ptrace_request what, const char* operation, pid_t tid, int signal) {
  if (has_news(tid)) return {};
  return request(what, operation, tid, nullptr,
                 number_argument(static_cast<std::uint64_t>(signal)));
}

Result<std::uint64_t> peek(__ptrace_request what, const char* operation, pid_t tid,
                           std::uint64_t address) {
  errno = 0;
  const long word = ::ptrace(what, tid, number_argument(address), nullptr);
  if (word == -1 && errno != 0) return fail(request_error(operation, tid));
  return static_cast<std::uint64_t>(word);
}

constexpr unsigned kDebugRegisters = 8;
std::uint64_t debug_register_offset(unsigned number) {
  return offsetof(user, u_debugreg) + number * sizeof(std::uint64_t);
}

Result<std::vector<std::uint8_t>> read_register_note(pid_t tid, std::uint32_t note) {
  // Twice the largest known state (AMX); the kernel writes only as much as there is.
  std::array<std::uint8_t, 24 * 1024> buffer;  // NOLINT: filled by the kernel
  iovec vector{buffer.data(), buffer.size()};
  BT_CHECKED(
      request(PTRACE_GETREGSET, "ptrace(PTRACE_GETREGSET)", tid, number_argument(note), &vector));
  return std::vector<std::uint8_t>(buffer.data(), buffer.data() + vector.iov_len);
}

}  // namespace

bool has_news(pid_t tid) {
  siginfo_t info{};
  const int done = ::waitid(P_PID, static_cast<id_t>(tid), &info,
                            WEXITED | WSTOPPED | WNOHANG | WNOWAIT | __WALL);
  return done == 0 && info.si_pid == tid;
}

Result<void> seize(pid_t tid, unsigned long options) {
  return request(PTRACE_SEIZE, "ptrace(PTRACE_SEIZE)", tid, nullptr, number_argument(options));
}

Result<void> set_options(pid_t tid, unsigned long options) {
  return request(PTRACE_SETOPTIONS, "ptrace(PTRACE_SETOPTIONS)", tid, nullptr,
                 number_argument(options));
}

Result<void> interrupt(pid_t tid) {
  return request(PTRACE_INTERRUPT, "ptrace(PTRACE_INTERRUPT)", tid, nullptr, nullptr);
}

Result<void> cont(pid_t tid, int signal) {
  return resume(PTRACE_CONT, "ptrace(PTRACE_CONT)", tid, signal);
}

Result<void> step(pid_t tid, int signal) {
  return resume(PTRACE_SINGLESTEP, "ptrace(PTRACE_SINGLESTEP)", tid, signal);
}

Result<void> cont_syscall(pid_t tid, int signal) {
  return resume(PTRACE_SYSCALL, "ptrace(PTRACE_SYSCALL)", tid, signal);
}

Result<void> listen(pid_t tid) {
  return request(PTRACE_LISTEN, "ptrace(PTRACE_LISTEN)", tid, nullptr, nullptr);
}

Result<void> detach(pid_t tid, int signal) {
  return resume(PTRACE_DETACH, "ptrace(PTRACE_DETACH)", tid, signal);
}

Result<UserRegs> read_user_regs(pid_t tid) {
  UserRegs regs;
  BT_CHECKED(request(PTRACE_GETREGS, "ptrace(PTRACE_GETREGS)", tid, nullptr, regs.words.data()));
  return regs;
}

Result<void> write_user_regs(pid_t tid, const UserRegs& regs) {
  UserRegs copy = regs;
  return request(PTRACE_SETREGS, "ptrace(PTRACE_SETREGS)", tid, nullptr, copy.words.data());
}

Result<std::uint64_t> peek_user_reg(pid_t tid, UserReg reg) {
  return peek(PTRACE_PEEKUSER, "ptrace(PTRACE_PEEKUSER)", tid,
              static_cast<std::uint64_t>(reg) * sizeof(std::uint64_t));
}

Result<void> poke_user_reg(pid_t tid, UserReg reg, std::uint64_t value) {
  return request(PTRACE_POKEUSER, "ptrace(PTRACE_POKEUSER)", tid,
                 number_argument(static_cast<std::uint64_t>(reg) * sizeof(std::uint64_t)),
                 number_argument(value));
}

Result<TraceeAddr> peek_pc(pid_t tid) {
  BT_TRY(const std::uint64_t pc, peek_user_reg(tid, UserReg::kRip));
  return TraceeAddr{pc};
}

Result<std::vector<std::uint8_t>> read_xstate(pid_t tid) {
  auto state = read_register_note(tid, NT_X86_XSTATE);
  if (state || state.error().is(TraceErrc::kTraceeGone)) return state;
  // ENODEV or EINVAL: a CPU or kernel without XSAVE.
  return read_register_note(tid, NT_PRFPREG);
}

Result<void> write_xstate(pid_t tid, std::span<const std::uint8_t> bytes) {
  std::vector<std::uint8_t> copy(bytes.begin(), bytes.end());
  iovec vector{copy.data(), copy.size()};
  // Without XSAVE, read_xstate() returns just an FXSAVE area.
  const std::uint32_t note = copy.size() > sizeof(user_fpregs_struct) ? NT_X86_XSTATE : NT_PRFPREG;
  return request(PTRACE_SETREGSET, "ptrace(PTRACE_SETREGSET)", tid, number_argument(note), &vector);
}

Result<arch::cpu::RawRegisters> read_registers(pid_t tid) {
  arch::cpu::RawRegisters out;
  BT_TRY(out.user, read_user_regs(tid));
  BT_TRY(out.xsave, read_xstate(tid));
  return out;
}

Result<void> write_registers(pid_t tid, const arch::cpu::RawRegisters& regs) {
  BT_CHECKED(write_user_regs(tid, regs.user));
  if (!regs.xsave.empty()) BT_CHECKED(write_xstate(tid, regs.xsave));
  return {};
}

Result<std::uint64_t> read_debug_register(pid_t tid, unsigned number) {
  if (number >= kDebugRegisters)
    return fail(TraceErrc::kInvalidArgument, "read a debug register", number);
  return peek(PTRACE_PEEKUSER, "ptrace(PTRACE_PEEKUSER, debug register)", tid,
              debug_register_offset(number));
}

Result<void> write_debug_register(pid_t tid, unsigned number, std::uint64_t value) {
  if (number >= kDebugRegisters)
    return fail(TraceErrc::kInvalidArgument, "write a debug register", number);
  return request(PTRACE_POKEUSER, "ptrace(PTRACE_POKEUSER, debug register)", tid,
                 number_argument(debug_register_offset(number)), number_argument(value));
}

Result<siginfo_t> read_siginfo(pid_t tid) {
  siginfo_t info{};
  BT_CHECKED(request(PTRACE_GETSIGINFO, "ptrace(PTRACE_GETSIGINFO)", tid, nullptr, &info));
  return info;
}

Result<void> write_siginfo(pid_t tid, const siginfo_t& info) {
  siginfo_t copy = info;
  return request(PTRACE_SETSIGINFO, "ptrace(PTRACE_SETSIGINFO)", tid, nullptr, &copy);
}

Result<std::vector<siginfo_t>> pending_signals(pid_t tid) {
  constexpr std::size_t kMost = 32;
  std::vector<siginfo_t> infos(kMost);
  __ptrace_peeksiginfo_args which{};
  which.nr = static_cast<std::int32_t>(kMost);
  const long count = ::ptrace(PTRACE_PEEKSIGINFO, tid, &which, infos.data());
  if (count < 0) return fail(request_error("ptrace(PTRACE_PEEKSIGINFO)", tid));
  infos.resize(static_cast<std::size_t>(count));
  return infos;
}

Result<std::uint64_t> read_signal_mask(pid_t tid) {
  std::uint64_t mask = 0;
  BT_CHECKED(request(PTRACE_GETSIGMASK, "ptrace(PTRACE_GETSIGMASK)", tid,
                     number_argument(sizeof mask), &mask));
  return mask;
}

Result<void> write_signal_mask(pid_t tid, std::uint64_t mask) {
  return request(PTRACE_SETSIGMASK, "ptrace(PTRACE_SETSIGMASK)", tid, number_argument(sizeof mask),
                 &mask);
}

Result<unsigned long> event_message(pid_t tid) {
  unsigned long message = 0;
  BT_CHECKED(request(PTRACE_GETEVENTMSG, "ptrace(PTRACE_GETEVENTMSG)", tid, nullptr, &message));
  return message;
}

Result<SyscallInfo> syscall_info(pid_t tid) {
  __ptrace_syscall_info info{};
  const long got = ::ptrace(PTRACE_GET_SYSCALL_INFO, tid, number_argument(sizeof info), &info);
  if (got == -1) {
    // EIO: a kernel that does not know the request.
    if (errno == EIO)
      return fail(TraceErrc::kUnsupported, "ptrace(PTRACE_GET_SYSCALL_INFO)",
                  static_cast<std::uint64_t>(tid));
    return fail(request_error("ptrace(PTRACE_GET_SYSCALL_INFO)", tid));
  }
  SyscallInfo out;
  out.audit_arch = info.arch;
  out.pc = info.instruction_pointer;
  switch (info.op) {
    case PTRACE_SYSCALL_INFO_ENTRY:
      out.phase = SyscallPhase::kEntry;
      out.number = info.entry.nr;
      std::memcpy(out.arguments, info.entry.args, sizeof out.arguments);
      break;
    case PTRACE_SYSCALL_INFO_EXIT:
      out.phase = SyscallPhase::kExit;
      out.return_value = info.exit.rval;
      out.is_error = info.exit.is_error != 0;
      break;
    case PTRACE_SYSCALL_INFO_SECCOMP:
      out.phase = SyscallPhase::kSeccomp;
      out.number = info.seccomp.nr;
      std::memcpy(out.arguments, info.seccomp.args, sizeof out.arguments);
      break;
    default:
      break;
  }
  return out;
}

Result<std::uint64_t> peek_data(pid_t tid, TraceeAddr address) {
  return peek(PTRACE_PEEKDATA, "ptrace(PTRACE_PEEKDATA)", tid, address.value());
}

Result<void> poke_data(pid_t tid, TraceeAddr address, std::uint64_t word) {
  return request(PTRACE_POKEDATA, "ptrace(PTRACE_POKEDATA)", tid, number_argument(address.value()),
                 number_argument(word));
}

Result<std::uint64_t> thread_area_base(pid_t tid, int gdt_index) {
  user_desc description{};
  BT_CHECKED(request(PTRACE_GET_THREAD_AREA, "ptrace(PTRACE_GET_THREAD_AREA)", tid,
                     number_argument(static_cast<std::uint64_t>(gdt_index)), &description));
  return description.base_addr;
}

Result<RseqArea> rseq_area(pid_t tid) {
  __ptrace_rseq_configuration facts{};
  const auto what = static_cast<__ptrace_request>(PTRACE_GET_RSEQ_CONFIGURATION);
  if (::ptrace(what, tid, number_argument(sizeof facts), &facts) == -1) {
    return fail(request_error("PTRACE_GET_RSEQ_CONFIGURATION", tid));
  }
  return RseqArea{TraceeAddr{facts.rseq_abi_pointer}, facts.rseq_abi_size};
}

}  // namespace backtrail::tracee::request
