// SPDX-License-Identifier: Apache-2.0
#include "decoder/values/system_call_effects.hpp"

#include <algorithm>
#include <span>

#include "arch/base/page.hpp"

namespace backtrail::decoder::values {

using arch::cpu::values::Known;

namespace {

constexpr int kNoArgument = -1;

/// A buffer that the kernel may write: an argument and its maximum length.
struct Buffer {
  int argument = kNoArgument;  ///< 1 for rdi ... 6 for r9.
  std::uint32_t bytes = 0;
  int count = kNoArgument;  ///< The argument that gives the number of units of `bytes` bytes.
};

struct Row {
  std::uint16_t number;
  std::array<Buffer, 2> buffers{};
};

/// Calls that write at most these buffers and change no mapping. All other calls may change
/// anything, except for a few with rules of their own below. Numbers: asm/unistd_64.h.
constexpr Row kRows[] = {
    {0, {{{2, 1, 3}, {}}}},     // read
    {1},                        // write
    {3},                        // close
    {5, {{{2, 144}, {}}}},      // fstat
    {6, {{{2, 144}, {}}}},      // lstat
    {4, {{{2, 144}, {}}}},      // stat
    {8},                        // lseek
    {13, {{{3, 32}, {}}}},      // rt_sigaction
    {14, {{{3, 8}, {}}}},       // rt_sigprocmask
    {17, {{{2, 1, 3}, {}}}},    // pread64
    {18},                       // pwrite64
    {20},                       // writev
    {21},                       // access
    {22, {{{1, 8}, {}}}},       // pipe
    {24},                       // sched_yield
    {32},                       // dup
    {33},                       // dup2
    {34},                       // pause
    {35, {{{2, 16}, {}}}},      // nanosleep
    {37},                       // alarm
    {39},                       // getpid
    {62},                       // kill
    {63, {{{1, 390}, {}}}},     // uname
    {74},                       // fsync
    {79, {{{1, 1, 2}, {}}}},    // getcwd
    {80},                       // chdir
    {82},                       // rename
    {83},                       // mkdir
    {87},                       // unlink
    {89, {{{2, 1, 3}, {}}}},    // readlink
    {95},                       // umask
    {96, {{{1, 16}, {2, 8}}}},  // gettimeofday
    {98, {{{2, 144}, {}}}},     // getrusage
    {99, {{{1, 112}, {}}}},     // sysinfo
    {102},                      // getuid
    {104},                      // getgid
    {107},                      // geteuid
    {108},                      // getegid
    {110},                      // getppid
    {131, {{{2, 24}, {}}}},     // sigaltstack
    {186},                      // gettid
    {200},                      // tkill
    {201, {{{1, 8}, {}}}},      // time
    {204, {{{3, 1, 2}, {}}}},   // sched_getaffinity
    {218},                      // set_tid_address
    {217, {{{2, 1, 3}, {}}}},   // getdents64
    {228, {{{2, 16}, {}}}},     // clock_gettime
    {229, {{{2, 16}, {}}}},     // clock_getres
    {230, {{{4, 16}, {}}}},     // clock_nanosleep
    {231},                      // exit_group
    {234},                      // tgkill
    {257},                      // openat
    {262, {{{3, 144}, {}}}},    // newfstatat
    {267, {{{3, 1, 4}, {}}}},   // readlinkat
    {269},                      // faccessat
    {273},                      // set_robust_list
    {302, {{{4, 16}, {}}}},     // prlimit64
    {318, {{{1, 1, 2}, {}}}},   // getrandom
    {439},                      // faccessat2
};

const Row* row_of(std::uint64_t number) {
  const auto* found = std::find_if(std::begin(kRows), std::end(kRows),
                                   [number](const Row& row) { return row.number == number; });
  return found == std::end(kRows) ? nullptr : found;
}

std::optional<std::vector<MemoryRange>> written(const Row& row, std::span<const Known> in) {
  std::vector<MemoryRange> writes;
  for (const Buffer& buffer : row.buffers) {
    if (buffer.argument == kNoArgument) continue;
    std::uint64_t bytes = buffer.bytes;
    if (buffer.count != kNoArgument) {
      const Known& count = in[static_cast<std::size_t>(buffer.count)];
      if (!count.all()) return std::nullopt;
      bytes = count.value;
    }
    if (bytes == 0) continue;
    const Known& at = in[static_cast<std::size_t>(buffer.argument)];
    if (!at.all()) return std::nullopt;
    if (at.value == 0) continue;
    if (at.value + bytes < at.value) return std::nullopt;
    writes.push_back({at.value, bytes});
  }
  return writes;
}

MemoryRange whole_pages(std::uint64_t begin, std::uint64_t bytes) {
  const std::uint64_t first = page_begin(begin);
  return {first, round_up_to_pages(begin + bytes) - first};
}

std::optional<CallEffects> mapping_effects(std::uint64_t number, std::span<const Known> in,
                                           const Known& out) {
  CallEffects effects;
  effects.writes.emplace();
  constexpr std::uint64_t kLowestError = ~std::uint64_t{4094};
  constexpr std::uint64_t kMapFixed = 0x10;
  constexpr std::uint64_t kTcGets = 0x5401;
  constexpr std::uint64_t kDupFdCloexec = 1030;
  switch (number) {
    case 9:  // mmap
      if (!in[2].all() || !out.all()) return std::nullopt;
      // A failed mmap with MAP_FIXED may have unmapped the old mapping.
      if (out.value >= kLowestError) {
        if (!in[1].all()) return std::nullopt;
        effects.mapping = whole_pages(in[1].value, in[2].value);
      } else {
        effects.mapping = whole_pages(out.value, in[2].value);
      }
      effects.removes = !in[4].bit_known(4) || (in[4].value & kMapFixed) != 0;
      break;
    case 10:  // mprotect
    case 11:  // munmap
      effects.removes = true;
      [[fallthrough]];
    case 28:  // madvise
      if (!in[1].all() || !in[2].all()) return std::nullopt;
      effects.mapping = whole_pages(in[1].value, in[2].value);
      break;
    case 12:  // brk
      effects.heap = !in[1].all() || in[1].value != 0;
      break;
    case 16:  // ioctl
      if (!in[2].all(32) || (in[2].value & 0xffffffff) != kTcGets) return std::nullopt;
      effects.writes.reset();
      if (in[3].all()) effects.writes = {{in[3].value, 64}};
      break;
    case 72:  // fcntl: commands on descriptors and their flags
      if (!in[2].all(32)) return std::nullopt;
      if ((in[2].value & 0xffffffff) > 4 && (in[2].value & 0xffffffff) != kDupFdCloexec) {
        return std::nullopt;
      }
      break;
    default:
      return std::nullopt;
  }
  if (effects.mapping && effects.mapping->begin + effects.mapping->bytes < effects.mapping->begin) {
    return std::nullopt;
  }
  return effects;
}

/// Returns true for futex operations that only wait or wake, which write no memory.
bool only_waits(const Known& operation) {
  constexpr std::uint64_t kCommand = 0x7f;
  if ((operation.mask & kCommand) != kCommand) return false;
  switch (operation.value & kCommand) {
    case 0:   // FUTEX_WAIT
    case 1:   // FUTEX_WAKE
    case 9:   // FUTEX_WAIT_BITSET
    case 10:  // FUTEX_WAKE_BITSET
      return true;
    default:
      return false;
  }
}

/// A recorder may have changed the frame that the call returns from.
CallEffects handler_return(const Known& stack) {
  CallEffects effects;
  if (!stack.all()) return effects;
  effects.writes.emplace();
  for (const auto& changed : arch::cpu::values::kChangedInFrames) {
    effects.writes->push_back({stack.value + changed.offset, changed.bytes});
  }
  return effects;
}

}  // namespace

std::optional<CallEffects> call_effects(const std::array<Known, 7>& in, const Known& out,
                                        const Known& stack) {
  // The kernel uses the low 32 bits of the number.
  if (!in[0].all(32)) return std::nullopt;
  const std::uint64_t number = in[0].value & 0xffffffff;
  constexpr std::uint64_t kSigreturn = 15;
  constexpr std::uint64_t kFutex = 202;
  if (number == kSigreturn) return handler_return(stack);
  if (number == kFutex) {
    CallEffects effects;
    if (only_waits(in[2])) effects.writes.emplace();
    return effects;
  }
  if (const Row* row = row_of(number)) {
    CallEffects effects;
    effects.writes = written(*row, in);
    return effects;
  }
  return mapping_effects(number, in, out);
}

}  // namespace backtrail::decoder::values
