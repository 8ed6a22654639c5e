// SPDX-License-Identifier: Apache-2.0
#include "test/unit/arch/x86/translate/translated_run.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <stdexcept>
#include <utility>

#include <asm/prctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "test/unit/arch/x86/translate/stepped.hpp"

namespace backtrail::arch::x86::translate {
namespace {

constexpr std::size_t kCodeBytes = 1UL << 20;
/// Where the far jump ends that stands for the dispatch stub, and where the way of handlers does
/// that return.
constexpr std::size_t kReturnedAt = 16;
constexpr std::size_t kMissBytes = 128;
constexpr std::size_t kLogEntries = 4096;
/// Most superblocks record across the end of the ring.
constexpr std::uint64_t kFirstValue = kRingValues - 4;
constexpr int kMostSuperblocks = 2000;
constexpr std::size_t kRcx = 1;
constexpr std::size_t kR10 = 10;
constexpr std::size_t kR11 = 11;

static_assert(offsetof(ThreadPage, state.general) == 0x200);
static_assert(offsetof(ThreadPage, state.vectors) == 0x280);
static_assert(offsetof(ThreadPage, state.flags) == 0x380);
static_assert(offsetof(ThreadPage, host_stack) == 0x388);
static_assert(offsetof(ThreadPage, target) == 0x390);
static_assert(offsetof(ThreadPage, frame) == static_cast<std::size_t>(Slot::kFrame));

// Instructions that change no flags and need no register move the program's whole state to and from
// the page.
asm(R"(
  .text
  .globl bt_test_enter
bt_test_enter:
  push %rbx
  push %rbp
  push %r12
  push %r13
  push %r14
  push %r15
  mov %rsp, %gs:0x388
  movups %gs:0x280, %xmm0
  movups %gs:0x290, %xmm1
  movups %gs:0x2a0, %xmm2
  movups %gs:0x2b0, %xmm3
  movups %gs:0x2c0, %xmm4
  movups %gs:0x2d0, %xmm5
  movups %gs:0x2e0, %xmm6
  movups %gs:0x2f0, %xmm7
  movups %gs:0x300, %xmm8
  movups %gs:0x310, %xmm9
  movups %gs:0x320, %xmm10
  movups %gs:0x330, %xmm11
  movups %gs:0x340, %xmm12
  movups %gs:0x350, %xmm13
  movups %gs:0x360, %xmm14
  movups %gs:0x370, %xmm15
  pushq %gs:0x380
  popfq
  mov %gs:0x200, %rax
  mov %gs:0x208, %rcx
  mov %gs:0x210, %rdx
  mov %gs:0x218, %rbx
  mov %gs:0x220, %rsp
  mov %gs:0x228, %rbp
  mov %gs:0x230, %rsi
  mov %gs:0x238, %rdi
  mov %gs:0x240, %r8
  mov %gs:0x248, %r9
  mov %gs:0x250, %r10
  mov %gs:0x258, %r11
  mov %gs:0x260, %r12
  mov %gs:0x268, %r13
  mov %gs:0x270, %r14
  mov %gs:0x278, %r15
  jmp *%gs:0x390

  .globl bt_test_leave
bt_test_leave:
  mov %rax, %gs:0x200
  mov %rcx, %gs:0x208
  mov %rdx, %gs:0x210
  mov %rbx, %gs:0x218
  mov %rsp, %gs:0x220
  mov %rbp, %gs:0x228
  mov %rsi, %gs:0x230
  mov %rdi, %gs:0x238
  mov %r8, %gs:0x240
  mov %r9, %gs:0x248
  mov %r10, %gs:0x250
  mov %r11, %gs:0x258
  mov %r12, %gs:0x260
  mov %r13, %gs:0x268
  mov %r14, %gs:0x270
  mov %r15, %gs:0x278
  mov %gs:0x388, %rsp
  pushfq
  popq %gs:0x380
  movups %xmm0, %gs:0x280
  movups %xmm1, %gs:0x290
  movups %xmm2, %gs:0x2a0
  movups %xmm3, %gs:0x2b0
  movups %xmm4, %gs:0x2c0
  movups %xmm5, %gs:0x2d0
  movups %xmm6, %gs:0x2e0
  movups %xmm7, %gs:0x2f0
  movups %xmm8, %gs:0x300
  movups %xmm9, %gs:0x310
  movups %xmm10, %gs:0x320
  movups %xmm11, %gs:0x330
  movups %xmm12, %gs:0x340
  movups %xmm13, %gs:0x350
  movups %xmm14, %gs:0x360
  movups %xmm15, %gs:0x370
  cld
  pop %r15
  pop %r14
  pop %r13
  pop %r12
  pop %rbp
  pop %rbx
  ret
)");

/// Maps a thread page and its ring of values, and points gs there.
std::uint8_t* map_part() {
  constexpr std::size_t kRingBytes = kRingValues * kValueBytes;
  const int file = ::memfd_create("part", 0);
  const auto map = [file](void* at, std::size_t bytes, std::size_t offset, int flags) {
    void* const got = ::mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | flags, file,
                             static_cast<off_t>(offset));
    if (got == MAP_FAILED) throw std::runtime_error{"mmap"};
    return static_cast<std::uint8_t*>(got);
  };
  constexpr std::size_t kRingEnd = kValuesOffset + kRingBytes;
  if (::ftruncate(file, kRingEnd + kRepeatedBytes) != 0) throw std::runtime_error{"ftruncate"};
  std::uint8_t* const part = map(nullptr, kRingEnd + kRepeatedBytes, 0, 0);
  (void)map(part + kRingEnd, kRepeatedBytes, kValuesOffset, MAP_FIXED);
  ::close(file);
  const auto at = std::bit_cast<std::uintptr_t>(part);
  if (::syscall(SYS_arch_prctl, ARCH_SET_GS, at) != 0) throw std::runtime_error{"arch_prctl"};
  return part;
}

std::uint8_t* part() {
  static std::uint8_t* const only = map_part();
  return only;
}

ThreadPage& page() {
  static auto* const only = new (part()) ThreadPage;
  return *only;
}

void enter(TraceeAddr target) {
  page().target = target.value();
  if (Stepped::active()) page().state.flags |= kTrapFlag;
  bt_test_enter();
}

}  // namespace

UserRegs user_regs(const MachineState& state) {
  UserRegs out;
  for (std::size_t i = 0; i < kGeneralRegisters.size(); ++i)
    out[kGeneralRegisters.at(i)] = state.general.at(i);
  return out;
}

std::uint64_t& TranslatedRun::slot(Slot which) {
  constexpr auto kFrame = static_cast<std::uint32_t>(Slot::kFrame);
  const auto offset = static_cast<std::uint32_t>(which);
  if (offset >= kFrame) return page().frame.at((offset - kFrame) / sizeof(std::uint64_t));
  return page().slots.at(offset / sizeof(std::uint64_t));
}

Branch TranslatedRun::returned_range() const {
  return {code_.address() + kReturnedAt, code_.address() + kMissBytes};
}

void write_far_jump(std::span<std::uint8_t> out, std::uint64_t target) {
  constexpr std::array<std::uint8_t, 6> kJump{0xff, 0x25, 0, 0, 0, 0};  // jmp [rip]
  std::memcpy(out.data(), kJump.data(), kJump.size());
  std::memcpy(out.data() + kJump.size(), &target, sizeof target);
}

Pages::Pages(std::size_t bytes, bool low) {
  void* at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE | PROT_EXEC,
                    MAP_PRIVATE | MAP_ANONYMOUS | (low ? MAP_32BIT : 0), -1, 0);
  if (at == MAP_FAILED) throw std::runtime_error{"mmap"};
  bytes_ = {static_cast<std::uint8_t*>(at), bytes};
}

Pages::~Pages() {
  ::munmap(bytes_.data(), bytes_.size());
}

TraceeAddr Pages::address() const {
  return TraceeAddr{std::bit_cast<std::uintptr_t>(bytes_.data())};
}

TranslatedRun::TranslatedRun()
    : code_{kCodeBytes, true}, table_{kEntryTableBytes + kPolicyBytes, true}, log_(kLogEntries) {
  write_far_jump(code_.bytes(), std::bit_cast<std::uintptr_t>(&bt_test_leave));
  const DispatchStub routine = make_dispatch_stub(code_.address());
  const auto returned = std::span{routine.code}.subspan(routine.returned_at);
  if (kReturnedAt + returned.size() > kMissBytes) throw std::runtime_error{"too much code"};
  std::copy(returned.begin(), returned.end(), code_.bytes().begin() + kReturnedAt);
  slot(Slot::kFrameAt) = std::bit_cast<std::uintptr_t>(&page().frame);
  const std::uint64_t miss = code_.address().value();
  for (std::size_t i = 0; i < kTableEntries; ++i) {
    std::memcpy(table_.bytes().data() + i * sizeof miss, &miss, sizeof miss);
  }
  const std::uint32_t mask = kTableEntries - 1;
  std::memcpy(policy().data() + static_cast<std::size_t>(Policy::kIndexMask), &mask, sizeof mask);
}

std::span<const std::uint64_t> TranslatedRun::values() const {
  const void* const first = part() + kValuesOffset + kFirstValue * kValueBytes;
  return {static_cast<const std::uint64_t*>(first),
          (slot(Slot::kValues) - kFirstValue) % kRingValues};
}

void TranslatedRun::expect_left(UntranslatableReason why, const Shape& shape) {
  // Data is out of reach without a free register, or a call was not made.
  EXPECT_TRUE(why == UntranslatableReason::kRegisters || shape.system_calls != nullptr)
      << to_string(why);
}

std::optional<TraceeAddr> TranslatedRun::translate_at(const CodeSource& code, TraceeAddr start,
                                                      Shape shape, bool lands) {
  if (lands) used_ += kIbEntryAlignment - kIbEntryOffset;
  const TraceeAddr at = code_.address() + used_;
  TranslateOptions options{.address = at, .table = table_.address(), .miss = code_.address()};
  options.returned = returned_range().first;
  options.first_exit = static_cast<std::uint32_t>(exits_.size());
  options.checked = shape.checked;
  options.saves_memory = shape.saves_memory;
  options.max_instructions = shape.max_instructions;
  options.inline_system_calls = shape.system_calls;
  options.ib_entry_test = shape.ib_entry_test;
  options.table_index = shape.table_index;
  options.records_values = shape.records_values;
  options.records_old_bytes = shape.records_old_bytes;
  if (lands) options.conflict = code_.address();
  const auto result = translate(code, start, options);
  const auto* block = std::get_if<Superblock>(&result);
  if (block == nullptr) {
    expect_left(std::get<UntranslatableReason>(result), shape);
    return std::nullopt;
  }
  if (used_ + block->code.size() > kCodeBytes) throw std::runtime_error{"too much code"};
  std::memcpy(code_.bytes().data() + used_, block->code.data(), block->code.size());
  used_ += (block->code.size() + 15) / 16 * 16;
  exits_.insert(exits_.end(), block->exits.begin(), block->exits.end());
  current_ = *block;
  ++superblocks_;
  return lands ? at + kIbEntryOffset : at;
}

void TranslatedRun::expect_conflict(TraceeAddr entry, TraceeAddr start) {
  MachineState& state = page().state;
  wrong_target_ = start + 1;
  state.general[kR10] = wrong_target_->value();
  MachineState before = state;
  enter(entry);
  before.general[kRcx] = state.general[kRcx];
  EXPECT_EQ(state, before);
  wrong_target_.reset();
  state.general[kR10] = start.value();
}

void TranslatedRun::expect_stale(TraceeAddr entry) {
  MachineState& state = page().state;
  const MachineState before = state;
  const auto [begin, end] = current_.ranges.front();
  auto* byte = std::bit_cast<std::uint8_t*>((begin + superblocks_ % (end - begin)).value());
  *byte ^= 1;
  enter(entry);
  *byte ^= 1;
  EXPECT_EQ(exit_logged().kind, ExitKind::kStale);
  EXPECT_EQ(state.general[kR11], log_begin().value() + kLogEntryBytes);
  for (const std::size_t used : {kRcx, kR10, kR11})
    state.general.at(used) = before.general.at(used);
  EXPECT_EQ(state, before);
}

std::optional<MachineState> TranslatedRun::run(const CodeSource& code, TraceeAddr begin,
                                               TraceeAddr end, const MachineState& state,
                                               Shape shape) {
  used_ = kMissBytes;
  exits_.clear();
  taken_.clear();
  bool lands = false;
  ThreadPage& thread = page();
  thread.state = state;
  TraceeAddr start = begin;
  for (int count = 0; start != end; ++count) {
    if (count == kMostSuperblocks) {
      ADD_FAILURE() << "does not get to its end";
      break;
    }
    const auto entry = translate_at(code, start, shape, lands);
    if (!entry) return std::nullopt;
    slot(Slot::kR10) = thread.state.general[kR10];
    slot(Slot::kR11) = thread.state.general[kR11];
    if (lands) {
      slot(Slot::kRcx) = std::exchange(thread.state.general[kRcx], 0x5555);
      thread.state.general[kR10] = start.value();
    }
    const auto log = std::bit_cast<std::uintptr_t>(log_.data());
    thread.state.general[kR11] = log;
    slot(Slot::kValues) = kFirstValue;
    if (lands) expect_conflict(*entry, start);
    if (shape.checked) expect_stale(*entry);
    enter(*entry);
    const std::uint64_t logged = (thread.state.general[kR11] - log) / sizeof(std::uint32_t);
    const TraceeAddr target{thread.state.general[kR10]};
    thread.state.general[kR10] = slot(Slot::kR10);
    thread.state.general[kR11] = slot(Slot::kR11);
    // Superblocks are not linked, so each is left once, to this loop.
    if (logged != 1 || log_[0] >= exits_.size()) {
      ADD_FAILURE() << logged << " entries in the log, " << log_[0];
      break;
    }
    const Exit& exit = exits_[log_[0]];
    EXPECT_NE(exit.kind, ExitKind::kStale);
    EXPECT_EQ(values().size(), exit.values);
    // The program continues after a failed call.
    if (exit.kind == ExitKind::kUntranslatable &&
        exit.reason != UntranslatableReason::kFailedCall) {
      expect_left(exit.reason, shape);
      return std::nullopt;
    }
    const bool indirect = exit.kind == ExitKind::kIndirect;
    if (indirect) thread.state.general[kRcx] = slot(Slot::kRcx);
    start = indirect ? target : exit.to;
    lands = shape.lands && indirect;
    if (exit.from != TraceeAddr{}) taken_.insert_or_assign(exit.from, start);
  }
  return thread.state;
}

MachineState TranslatedRun::run_natively(TraceeAddr begin, const MachineState& state) {
  ThreadPage& thread = page();
  thread.state = state;
  enter(begin);
  return thread.state;
}

}  // namespace backtrail::arch::x86::translate
