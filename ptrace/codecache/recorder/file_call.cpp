// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/recorder/file_call.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "arch/cpu/syscall_abi.hpp"
#include "ptrace/codecache/space/code_writers.hpp"
#include "ptrace/os/open_file.hpp"
#include "ptrace/tracee/process.hpp"
#include "ptrace/tracee/thread.hpp"

namespace backtrail::tracee::cache {
namespace {

constexpr TraceeAddr kEndOfMemory{1ULL << 57};
/// If a call names more ranges, it may have written anywhere.
constexpr std::uint64_t kMostRanges = 1024;

/// Returns the descriptor that the call writes to.
int written_file(const arch::cpu::UserRegs& regs) {
  const auto entry = syscall_number(regs);
  const bool third = entry == SYS_splice || entry == SYS_copy_file_range;
  return static_cast<int>(syscall_argument(regs, third ? 2 : 0));
}

std::optional<std::uint64_t> read_word(Thread& thread, TraceeAddr at) {
  std::array<std::uint8_t, sizeof(std::uint64_t)> bytes{};
  if (thread.process().read_memory(at, bytes) != bytes.size()) return std::nullopt;
  return std::bit_cast<std::uint64_t>(bytes);
}

}  // namespace

std::optional<std::uint64_t> FileCall::offset_of(Thread& thread, const arch::cpu::UserRegs& regs) {
  const std::uint64_t fourth = syscall_argument(regs, 3);
  switch (syscall_number(regs)) {
    case SYS_pwrite64:
    case SYS_pwritev:
      return fourth;
    case SYS_pwritev2:
      return fourth == ~std::uint64_t{0} ? std::nullopt : std::optional{fourth};
    case SYS_splice:
    case SYS_copy_file_range:
      return fourth == 0 ? std::nullopt : read_word(thread, TraceeAddr{fourth});
    default:
      return std::nullopt;
  }
}

bool FileCall::truncates(Thread& thread, const arch::cpu::UserRegs& regs) {
  switch (syscall_number(regs)) {
    case SYS_open:
      return (syscall_argument(regs, 1) & O_TRUNC) != 0;
    case SYS_openat:
    case SYS_open_by_handle_at:
      return (syscall_argument(regs, 2) & O_TRUNC) != 0;
    case SYS_openat2:
      // The flags are the first field of struct open_how.
      return (read_word(thread, TraceeAddr{syscall_argument(regs, 2)}).value_or(0) & O_TRUNC) != 0;
    default:
      return false;
  }
}

void FileCall::take_ranges(Thread& thread, const arch::cpu::UserRegs& regs) {
  const std::uint64_t count = syscall_argument(regs, 4);
  std::vector<iovec> vectors(std::min(count, kMostRanges));
  void* first = vectors.data();
  const std::span bytes{static_cast<std::uint8_t*>(first), vectors.size() * sizeof(iovec)};
  const TraceeAddr at{syscall_argument(regs, 3)};
  if (count > kMostRanges || thread.process().read_memory(at, bytes) != bytes.size()) {
    ranges_.emplace_back(TraceeAddr{}, kEndOfMemory);
    return;
  }
  for (const iovec& each : vectors) {
    const TraceeAddr begin{std::bit_cast<std::uint64_t>(each.iov_base)};
    ranges_.emplace_back(begin, begin + each.iov_len);
  }
}

std::optional<FileCall> FileCall::begin(Thread& thread, const arch::cpu::UserRegs& regs,
                                        SyscallEffect effect, CodeWriters& writers) {
  FileCall call{effect, regs.pc() + arch::cpu::kSyscallInsnBytes};
  switch (effect) {
    case SyscallEffect::kOpens:
      call.truncates_ = truncates(thread, regs);
      return call;
    case SyscallEffect::kTruncates:
      return call;
    case SyscallEffect::kWrites: {
      if (!writers.watches_writes()) return std::nullopt;
      call.fd_ = written_file(regs);
      const auto file = open_file(thread.tid(), call.fd_);
      if (!file || !file->is_memory) return std::nullopt;
      call.memory_of_ = file->memory_of;
      call.begin_ = offset_of(thread, regs);
      call.at_position_ = !call.begin_;
      if (call.at_position_) call.begin_ = file_position(thread.tid(), call.fd_);
      return call;
    }
    case SyscallEffect::kWritesMemory:
      call.memory_of_ = id_named_by(thread.tid(), syscall_argument(regs, 0));
      if (writers.find(*call.memory_of_) != &thread.process()) writers.note_foreign_writes();
      call.take_ranges(thread, regs);
      return call;
    case SyscallEffect::kWritesLater:
      writers.note_foreign_writes();
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

void FileCall::end_write(Thread& thread, std::uint64_t count, CodeWriters& writers) const {
  const auto end = at_position_ ? file_position(thread.tid(), fd_)
                   : begin_     ? std::optional{*begin_ + count}
                                : std::nullopt;
  // Another thread may have moved the position meanwhile.
  if (!begin_ || !end || *end < *begin_ + count || *end > kEndOfMemory.value()) {
    writers.note_written(memory_of_, TraceeAddr{}, kEndOfMemory);
  } else {
    writers.note_written(memory_of_, TraceeAddr{*begin_}, TraceeAddr{*end});
  }
}

void FileCall::end(Thread& thread, CodeWriters& writers) const {
  const auto regs = thread.user_regs();
  if (!regs || regs->pc() != behind_) return;
  const std::uint64_t result = syscall_result(*regs);
  if (result >= arch::cpu::kFirstSyscallError) return;
  switch (effect_) {
    case SyscallEffect::kOpens:
      writers.note_opened(thread.tid(), static_cast<int>(result), truncates_);
      return;
    case SyscallEffect::kTruncates:
      writers.note_written(std::nullopt, TraceeAddr{}, kEndOfMemory);
      return;
    case SyscallEffect::kWrites:
      if (result != 0) end_write(thread, result, writers);
      return;
    case SyscallEffect::kWritesMemory:
      for (const auto& [begin, end] : ranges_) writers.note_written(memory_of_, begin, end);
      return;
    default:
      return;
  }
}

}  // namespace backtrail::tracee::cache
