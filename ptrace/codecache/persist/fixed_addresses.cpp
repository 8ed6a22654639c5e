// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/persist/fixed_addresses.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <elf.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "arch/base/log.hpp"
#include "arch/base/page.hpp"
#include "arch/cpu/program_abi.hpp"
#include "ptrace/codecache/persist/address_plan.hpp"
#include "ptrace/os/procfs.hpp"
#include "ptrace/os/resource_limits.hpp"
#include "ptrace/remote/call_batch.hpp"
#include "ptrace/remote/remote_calls.hpp"
#include "ptrace/tracee/link_map.hpp"
#include "ptrace/tracee/process.hpp"
#include "ptrace/tracee/thread.hpp"

namespace backtrail::tracee::cache {
namespace {

using arch::cpu::kRedZoneBytes;
using arch::cpu::kStackAlignment;

using Maps = std::vector<MapEntry>;
using Auxv = std::vector<std::uint8_t>;
using AddressRange = std::pair<std::uint64_t, std::uint64_t>;

constexpr std::uint64_t kWordBytes = 8;
/// More than the kernel accepts as arguments (usually a quarter of 8 MiB of stack).
constexpr std::uint64_t kMostStackBytes = 16ULL << 20;
constexpr std::uint64_t kMostProgramHeaders = 256;
constexpr std::uint64_t kEmptyRoom = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

bool read_randomized(pid_t pid) {
  const ProcFs proc;
  const auto personality = proc.read(pid, "personality");
  if (!personality) return false;
  unsigned long flags = 0;
  std::from_chars(personality->data(), personality->data() + personality->size(), flags, 16);
  if ((flags & ADDR_NO_RANDOMIZE) != 0) return false;
  const auto mode = proc.read("sys/kernel/randomize_va_space");
  return !mode || !mode->starts_with('0');
}

bool is_randomized(Process& process) {
  auto& known = process.placement.random;
  if (!known) known = read_randomized(process.pid());
  return *known;
}

bool is_limited(pid_t pid) {
  const auto limit = limit_of(pid, LimitedResource::kAddressSpace);
  return !limit || limit->rlim_cur != RLIM_INFINITY;
}

template <typename T>
std::optional<T> read_value(Process& process, std::uint64_t at) {
  std::array<std::uint8_t, sizeof(T)> bytes{};
  if (process.read_memory(TraceeAddr{at}, bytes) != bytes.size()) return std::nullopt;
  return std::bit_cast<T>(bytes);
}

/// Returns the image with these program headers; nullopt if they are invalid, or if its place
/// cannot be chosen freely.
std::optional<LoadedImage> image_at(Process& process, std::uint64_t headers, std::uint64_t count,
                                    std::uint64_t bias) {
  std::vector<std::uint8_t> bytes(std::min(count, kMostProgramHeaders) * sizeof(Elf64_Phdr));
  if (process.read_memory(TraceeAddr{headers}, bytes) != bytes.size()) return std::nullopt;
  LoadedImage image{.begin = bias};
  std::optional<std::uint64_t> first;
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(Elf64_Phdr)) {
    Elf64_Phdr header{};
    std::memcpy(&header, bytes.data() + at, sizeof header);
    if (header.p_type != PT_LOAD) continue;
    if (!first) first = page_begin(header.p_vaddr);
    image.alignment = std::max(image.alignment, header.p_align);
  }
  if (first != 0U || !std::has_single_bit(image.alignment)) return std::nullopt;
  return image;
}

std::optional<LoadedImage> linker_at(Process& process, std::uint64_t base) {
  const auto header = read_value<Elf64_Ehdr>(process, base);
  if (!header || header->e_type != ET_DYN || header->e_phentsize != sizeof(Elf64_Phdr)) {
    return std::nullopt;
  }
  return image_at(process, base + header->e_phoff, header->e_phnum, base);
}

/// Returns the mapping that contains an address, or else the first one after it.
Maps::const_iterator mapping_at(const Maps& maps, std::uint64_t address) {
  return std::find_if(maps.begin(), maps.end(),
                      [&](const MapEntry& map) { return address < map.end; });
}

std::optional<LoadedImage> program_of(Process& process, const Maps& maps, const AuxvFacts& facts) {
  if (facts.program_header_bytes != sizeof(Elf64_Phdr)) return std::nullopt;
  const std::uint64_t headers = facts.program_headers.value();
  const auto map = mapping_at(maps, headers);
  if (map == maps.end() || headers < map->start || map->offset != 0) return std::nullopt;
  const auto header = read_value<Elf64_Ehdr>(process, map->start);
  if (!header) return std::nullopt;
  if (header->e_type == ET_EXEC) return LoadedImage{.begin = map->start, .movable = false};
  return image_at(process, headers, facts.program_header_count, map->start);
}

/// Returns the address of the first instruction that the kernel starts.
TraceeAddr first_insn(Process& process, const AuxvFacts& facts) {
  const std::uint64_t base = facts.interpreter_base.value();
  if (base == 0) return facts.entry;
  const auto header = read_value<Elf64_Ehdr>(process, base);
  return TraceeAddr{header ? base + header->e_entry : 0};
}

/// Returns true if remote calls are made from the vdso, which is not moved.
bool calls_from_vdso(Process& process, const Maps& maps) {
  const auto at = find_syscall_insn(process);
  if (!at) return false;
  const auto map = mapping_at(maps, at->value());
  return map != maps.end() && map->start <= at->value() && map->path == "[vdso]";
}

/// Returns the address of the auxiliary vector, which follows arguments and environment.
Result<TraceeAddr> find_auxv(Process& process, TraceeAddr sp) {
  const auto arguments = read_value<std::uint64_t>(process, sp.value());
  std::uint64_t at = sp.value() + kWordBytes * (arguments.value_or(0) + 2);
  std::array<std::uint8_t, kPageBytes> bytes{};
  while (arguments && at - sp.value() < kMostStackBytes) {
    const std::size_t got = process.read_memory(TraceeAddr{at}, bytes);
    for (std::size_t i = 0; i + kWordBytes <= got; i += kWordBytes) {
      std::uint64_t word = 0;
      std::memcpy(&word, bytes.data() + i, sizeof word);
      if (word == 0) return TraceeAddr{at + i + kWordBytes};
    }
    if (got < bytes.size()) break;
    at += got;
  }
  return fail(TraceErrc::kUnreadable, "find the auxiliary vector", sp.value());
}

Auxv moved_auxv(Auxv auxv, const AddressPlan& plan) {
  std::array<std::uint64_t, 2> entry{};
  for (std::size_t at = 0; at + sizeof entry <= auxv.size(); at += sizeof entry) {
    std::memcpy(entry.data(), auxv.data() + at, sizeof entry);
    if (entry[0] == AT_PHDR || entry[0] == AT_ENTRY) entry[1] += plan.program_distance;
    if (entry[0] == AT_BASE && entry[1] != 0) entry[1] += plan.linker_distance;
    std::memcpy(auxv.data() + at, entry.data(), sizeof entry);
  }
  return auxv;
}

/// Returns what /proc/PID/stat says about the program's memory; field numbers as in proc(5).
std::optional<prctl_mm_map> read_mm_map(pid_t pid) {
  const auto text = ProcFs{}.read(pid, "stat");
  if (!text || text->rfind(')') == std::string::npos) return std::nullopt;
  std::vector<std::uint64_t> fields(3);
  const char* at = text->data() + text->rfind(')') + 3;  // skips the state
  const char* const end = text->data() + text->size();
  while (at < end) {
    while (at < end && (*at == ' ' || *at == '-')) ++at;
    std::uint64_t value = 0;
    const auto parsed = std::from_chars(at, end, value);
    if (parsed.ec != std::errc{}) break;
    fields.push_back(value);
    at = parsed.ptr;
  }
  constexpr std::size_t kLast = 51;
  if (fields.size() < kLast) return std::nullopt;
  const auto field = [&](std::size_t number) { return fields[number - 1]; };
  prctl_mm_map map{};
  map.start_code = field(26);
  map.end_code = field(27);
  map.start_stack = field(28);
  map.start_data = field(45);
  map.end_data = field(46);
  map.start_brk = field(47);
  map.brk = map.start_brk;
  map.arg_start = field(48);
  map.arg_end = field(49);
  map.env_start = field(50);
  map.env_end = field(51);
  map.exe_fd = ~0U;
  return map;
}

/// Returns the free room that must be taken. The kernel maps at the highest free address below one
/// of its choice: the end of the dynamic linker or, without one, the page that was requested first.
/// With everything from `top` on taken, it maps directly below `top`.
std::vector<AddressRange> room_above(const Maps& maps, const AddressPlan& plan, TraceeAddr page) {
  std::vector<AddressRange> taken{{page.value(), page.value() + kPageBytes}};
  std::uint64_t end = page.value() + kPageBytes;
  for (const MapEntry& map : maps) {
    const bool moves = std::any_of(plan.moves.begin(), plan.moves.end(),
                                   [&](const auto& move) { return move.begin == map.start; });
    if (moves && map.start >= plan.top) end = std::max(end, map.end);
    if (!moves && map.end > plan.top) taken.push_back({map.start, map.end});
  }
  std::sort(taken.begin(), taken.end());
  std::vector<AddressRange> room;
  std::uint64_t at = plan.top;
  for (const auto& [begin, behind] : taken) {
    if (at >= end) break;
    if (at < begin) room.push_back({at, std::min(begin, end)});
    at = std::max(at, behind);
  }
  if (at < end) room.push_back({at, end});
  return room;
}

/// Bytes written to the program's memory temporarily.
class Borrowed {
 public:
  static Result<Borrowed> write(Process& process, TraceeAddr at,
                                std::span<const std::uint8_t> bytes) {
    std::vector<std::uint8_t> saved(bytes.size());
    if (process.read_memory(at, saved) != saved.size()) {
      return fail(TraceErrc::kUnreadable, "borrow memory", at.value());
    }
    BT_CHECKED(process.write_data(at, bytes));
    return Borrowed{process, at, std::move(saved)};
  }
  Borrowed(Borrowed&& other) noexcept
      : process_{std::exchange(other.process_, nullptr)},
        at_{other.at_},
        saved_{std::move(other.saved_)} {}
  Borrowed& operator=(Borrowed&&) = delete;
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;
  ~Borrowed() {
    if (process_ != nullptr) (void)process_->write_data(at_, saved_);
  }
  void keep() { process_ = nullptr; }

 private:
  Borrowed(Process& process, TraceeAddr at, std::vector<std::uint8_t> saved)
      : process_{&process}, at_{at}, saved_{std::move(saved)} {}
  Process* process_;
  TraceeAddr at_;
  std::vector<std::uint8_t> saved_;
};

prctl_mm_map moved_mm_map(prctl_mm_map map, const AddressPlan& plan, TraceeAddr auxv,
                          std::size_t auxv_bytes) {
  map.start_code += plan.program_distance;
  map.end_code += plan.program_distance;
  map.start_data += plan.program_distance;
  map.end_data += plan.program_distance;
  map.auxv = std::bit_cast<decltype(map.auxv)>(auxv.value());
  map.auxv_size = static_cast<std::uint32_t>(auxv_bytes);
  return map;
}

/// Returns code that moves the mappings, takes the room above, and tells the kernel the new
/// addresses for /proc.
Result<CallBatch::Code> moving_code(const Maps& maps, const AddressPlan& plan, TraceeAddr page,
                                    TraceeAddr mm_map) {
  CallBatch batch{page};
  for (const auto& [begin, end, to] : plan.moves) {
    const std::uint64_t bytes = end - begin;
    batch.call(SYS_mremap, {begin, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to}, to);
  }
  if (plan.top != 0) {
    for (const auto& [begin, end] : room_above(maps, plan, page)) {
      batch.call(SYS_mmap,
                 {begin, end - begin, PROT_NONE, kEmptyRoom | MAP_FIXED_NOREPLACE, ~0ULL, 0},
                 begin);
    }
  }
  // PR_SET_MM_MAP needs no privilege, unlike the other PR_SET_MM calls (kernel/sys.c:
  // prctl_set_mm_map).
  batch.call(SYS_prctl, {PR_SET_MM, PR_SET_MM_MAP, mm_map.value(), sizeof(prctl_mm_map), 0});
  CallBatch::Code code = batch.finish();
  if (code.bytes.size() > kPageBytes) return fail(TraceErrc::kUnsupported, "its many mappings");
  return code;
}

/// Requires a thread at its first instruction. On error nothing has changed.
Result<void> move(Thread& thread, const Maps& maps, const AddressPlan& plan,
                  const prctl_mm_map& old) {
  Process& process = thread.process();
  const TraceeAddr sp{old.start_stack};
  BT_TRY(const Auxv auxv, ProcFs{}.auxv(process.pid()));
  BT_TRY(const TraceeAddr auxv_at, find_auxv(process, sp));
  const auto mm_map = std::bit_cast<std::array<std::uint8_t, sizeof(prctl_mm_map)>>(
      moved_mm_map(old, plan, auxv_at, auxv.size()));
  const TraceeAddr at{(sp.value() - kRedZoneBytes - mm_map.size()) & ~(kStackAlignment - 1)};
  BT_TRY(RemoteCalls remote, RemoteCalls::begin(thread));
  BT_TRY(const std::uint64_t page,
         remote.call(SYS_mmap, {0, kPageBytes, PROT_READ | PROT_EXEC, kEmptyRoom, ~0ULL, 0}));
  const auto run = [&]() -> Result<void> {
    BT_TRY(const CallBatch::Code code, moving_code(maps, plan, TraceeAddr{page}, at));
    BT_TRY(Borrowed told, Borrowed::write(process, auxv_at, moved_auxv(auxv, plan)));
    BT_TRY(const Borrowed argument, Borrowed::write(process, at, mm_map));
    BT_CHECKED(process.write_data(TraceeAddr{page}, code.bytes));
    BT_CHECKED(remote.run(code));
    told.keep();
    return {};
  };
  auto done = run();
  if (!done) {
    for (const auto& [begin, end, to] : plan.moves) {
      const std::uint64_t bytes = end - begin;
      (void)remote.call(SYS_mremap, {to, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, begin});
    }
  }
  // The room above must have no hole, and no contents, because a core file would include them.
  const bool is_room = done && plan.top != 0;
  if (is_room) {
    (void)remote.call(SYS_mmap, {page, kPageBytes, PROT_NONE, kEmptyRoom | MAP_FIXED, ~0ULL, 0});
  } else {
    (void)remote.call(SYS_munmap, {page, kPageBytes});
  }
  return done;
}

Result<void> fix(Thread& thread) {
  Process& process = thread.process();
  const ProcFs proc;
  BT_TRY(const Auxv auxv, proc.auxv(process.pid()));
  BT_TRY(const Maps maps, proc.maps(process.pid()));
  const AuxvFacts facts = parse_auxv(auxv, kWordBytes);
  const auto program = program_of(process, maps, facts);
  const std::uint64_t base = facts.interpreter_base.value();
  const auto linker = base == 0 ? std::nullopt : linker_at(process, base);
  if (!program || (base != 0 && !linker)) return fail(TraceErrc::kUnsupported, "its layout");
  const auto plan = plan_addresses(maps, *program, linker);
  if (!plan) return {};
  const auto mm_map = read_mm_map(process.pid());
  if (!mm_map) return fail(TraceErrc::kMalformed, "/proc/PID/stat");
  BT_TRY(arch::cpu::UserRegs regs, thread.user_regs());
  const TraceeAddr pc = regs.pc();
  if (regs.sp().value() != mm_map->start_stack || pc != first_insn(process, facts)) return {};
  if (!calls_from_vdso(process, maps)) return fail(TraceErrc::kUnsupported, "calls from the vdso");
  BT_CHECKED(move(thread, maps, *plan, *mm_map));
  const auto entered = std::find_if(plan->moves.begin(), plan->moves.end(), [&](const auto& moved) {
    return moved.begin <= pc.value() && pc.value() < moved.end;
  });
  if (entered == plan->moves.end()) return {};
  BT_TRY(regs, thread.user_regs());
  regs[arch::cpu::UserReg::kRip] += entered->to - entered->begin;
  return thread.set_user_regs(regs);
}

}  // namespace

void fix_addresses(Thread& thread) {
  Process& process = thread.process();
  const pid_t pid = process.pid();
  if (std::exchange(process.placement.fixed, true)) return;
  if (process.isa() != arch::Isa::kAmd64 || process.threads().size() != 1 ||
      !is_randomized(process) || is_limited(pid)) {
    return;
  }
  if (const auto fixed = fix(thread); !fixed) {
    log::ptrace().debug("pid={}: its addresses stay random: {}", pid, fixed.error().message());
  }
}

namespace {

std::optional<std::uint64_t> find_repeated_place(Process& process) {
  if (!is_randomized(process)) return 0;
  const pid_t pid = process.pid();
  const ProcFs proc;
  const auto auxv = proc.auxv(pid);
  const auto maps = proc.maps(pid);
  if (!auxv || !maps) return std::nullopt;
  const AuxvFacts facts = parse_auxv(*auxv, kWordBytes);
  const std::uint64_t linker = facts.interpreter_base.value();
  const auto program = mapping_at(*maps, facts.program_headers.value());
  if (program == maps->end() || !are_planned(program->start, linker)) return std::nullopt;
  return linker != 0 ? linker : program->start;
}

}  // namespace

std::optional<std::uint64_t> repeated_place(Process& process) {
  auto& known = process.placement.repeated;
  if (!known) known = find_repeated_place(process);
  return *known;
}

void give_room_back(Thread& thread) {
  const pid_t pid = thread.process().pid();
  const auto place = repeated_place(thread.process());
  const std::uint64_t top = place ? planned_top(*place) : 0;
  const auto maps = ProcFs{}.maps(pid);
  if (top == 0 || !maps) return;
  auto remote = RemoteCalls::begin(thread);
  if (!remote) return;
  for (const MapEntry& map : *maps) {
    const bool is_room = map.start >= top && !map.read && !map.write && !map.execute &&
                         !map.shared && map.inode == 0 && map.path.empty();
    if (is_room) (void)remote->call(SYS_munmap, {map.start, map.end - map.start});
  }
}

}  // namespace backtrail::tracee::cache
