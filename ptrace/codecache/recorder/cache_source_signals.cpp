// Signals in translated code: faults that are delivered from where they occur, and handlers that
// return into translated code.

#include <algorithm>
#include <array>
#include <bit>
#include <csignal>
#include <cstring>
#include <utility>

#include <sys/syscall.h>

#include "arch/x86/syscall_insn.hpp"
#include "ptrace/codecache/recorder/cache_source.hpp"
#include "ptrace/codecache/syscalls/syscall_policy.hpp"
#include "ptrace/os/ptrace_request.hpp"
#include "ptrace/tracee/process.hpp"
#include "ptrace/tracee/thread.hpp"

namespace backtrail::tracee {
namespace {

using arch::x86::UserReg;
using arch::x86::translate::Slot;
using arch::x86::translate::Special;

constexpr std::uint64_t kSegvBit = 1ULL << (SIGSEGV - 1);
constexpr std::uint64_t kCodeSegment64 = 0x33;
constexpr std::uint64_t kTrapFlag = 0x100;
/// More than a checked superblock reads of the program's code.
constexpr std::uint64_t kMostCodeRead = 256;

// Offsets in struct ucontext, to which rsp points at rt_sigreturn (asm/sigcontext.h).
constexpr std::size_t kFrameR11 = 64;
constexpr std::size_t kFrameRip = 168;
constexpr std::size_t kFrameFlags = 176;
constexpr std::size_t kFrameCs = 184;
constexpr std::size_t kFrameMask = 296;
constexpr std::size_t kFrameR10 = 56;
using Frame = std::array<std::uint8_t, kFrameMask + sizeof(std::uint64_t)>;

std::uint64_t word_of(const Frame& frame, std::size_t offset) {
  std::uint64_t word = 0;
  std::memcpy(&word, frame.data() + offset, sizeof word);
  return word;
}

void set_word(Frame& frame, std::size_t offset, std::uint64_t word) {
  std::memcpy(frame.data() + offset, &word, sizeof word);
}

}  // namespace

/// Returns true if the instruction at the thread's native pc would itself have raised this signal.
/// If the fault may come from an access by translated code, or from a limit on address space, the
/// CPU must decide.
bool CacheSource::is_fault_of_program(Thread& thread, siginfo_t& info) const {
  if (!at_insn_ || process_.address_limit.counts_ours()) return false;
  const auto pc = thread.pc();
  if (!pc) return false;
  std::array<std::uint8_t, arch::x86::kSyscallInsnBytes> bytes{};
  const bool is_known = process_.read_code(*pc, bytes) == bytes.size();
  if (!is_known || (bytes[0] == 0x0f && bytes[1] == 0x05)) return false;
  const std::uint64_t at = std::bit_cast<std::uint64_t>(info.si_addr);
  switch (info.si_signo) {
    case SIGSEGV:
    case SIGBUS:
      return at - pc->value() >= kMostCodeRead;
    case SIGFPE:
      info.si_addr = std::bit_cast<void*>(pc->value());
      return request::write_siginfo(thread.tid(), info).has_value();
    default:
      return false;
  }
}

/// Call when the thread is at rt_sigreturn in its native state. Changes its frame so that the
/// kernel resumes it in translated code, which saves one stop. Returns false if the call must be
/// stepped instead.
bool CacheSource::return_from_handler(Thread& thread) {
  const auto regs = thread.user_regs();
  const SourceResume how = last_resume();
  if (!regs || (*regs)[UserReg::kRax] != SYS_rt_sigreturn || how.step || how.syscalls ||
      thread.stop_wanted() || process_.address_limit.counts_ours() || !space_->quiet().empty() ||
      space_->forbidden() || space_->room_wanted() || space_->held() || process_.lifted_for_vfork ||
      !everybody_recorded()) {
    return false;
  }
  Frame frame{};
  const TraceeAddr frame_at = regs->sp();
  if (process_.read_memory(frame_at, frame) != frame.size() ||
      (word_of(frame, kFrameCs) & 0xffff) != kCodeSegment64 ||
      (word_of(frame, kFrameFlags) & kTrapFlag) != 0) {
    return false;
  }
  const TraceeAddr to{word_of(frame, kFrameRip)};
  const auto body = space_->code().body(to);
  if (std::holds_alternative<Special>(body)) return false;
  HandlerReturn made{
      .at = regs->pc(), .to = to, .frame_at = frame_at + kFrameR11, .words = {}, .held = 0};
  constexpr std::size_t kBytes = kFrameMask + sizeof(std::uint64_t) - kFrameR11;
  static_assert(sizeof made.words == kBytes);
  std::memcpy(made.words.data(), frame.data() + kFrameR11, kBytes);
  const std::uint64_t mask = word_of(frame, kFrameMask);
  memory_->write(Slot::kR10, word_of(frame, kFrameR10));
  memory_->write(Slot::kR11, word_of(frame, kFrameR11));
  memory_->write(Slot::kSegvBlocked, mask & kSegvBit);
  made.held = slice().held();
  set_word(frame, kFrameMask, slice().note_return(mask));
  if (slice().active()) slice().measure(thread.tid());
  memory_->write(Slot::kHolds, slice().active() ? 1 : 0);
  set_word(frame, kFrameR11, memory_->log_begin().value());
  set_word(frame, kFrameRip, std::get<TraceeAddr>(body).value());
  arch::x86::UserRegs changed = *regs;
  changed[UserReg::kGsBase] = memory_->page().value();
  if (!process_.write_data(made.frame_at, std::span{frame}.subspan(kFrameR11)) ||
      !thread.set_user_regs(changed)) {
    return false;
  }
  returning_ = made;
  counted_at_ = TraceeAddr{};
  set_inside(true);
  ++entries_;
  (void)thread.run(RunRequest::kContinue, 0);
  return true;
}

void CacheSource::note_returned() {
  const auto made = std::exchange(returning_, std::nullopt);
  if (made) push(decoder::branch(made->at, made->to));
}

/// Call when a thread that was to return from a handler has stopped. Returns false if it has not
/// returned; its native state and the frame are then restored.
bool CacheSource::has_returned(Thread& thread, TraceeAddr pc) {
  if (space_->memory().has_code(pc)) {
    note_returned();
    return true;
  }
  const HandlerReturn made = *std::exchange(returning_, std::nullopt);
  const auto bytes = std::bit_cast<std::array<std::uint8_t, sizeof made.words>>(made.words);
  (void)process_.write_data(made.frame_at, bytes);
  slice().forget(~made.held);
  if (auto regs = thread.user_regs()) {
    (*regs)[UserReg::kGsBase] = 0;
    (void)thread.set_user_regs(*regs);
  }
  set_inside(false);
  moved_to(pc);
  return false;
}

}  // namespace backtrail::tracee
