// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/space/cache_space.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ptrace/codecache/space/code_writers.hpp"
#include "ptrace/codecache/syscalls/call_filters.hpp"
#include "ptrace/codecache/syscalls/syscall_policy.hpp"
#include "ptrace/os/procfs.hpp"
#include "ptrace/os/ptrace_request.hpp"
#include "ptrace/os/resource_limits.hpp"
#include "ptrace/os/signal_bits.hpp"
#include "ptrace/remote/remote_calls.hpp"
#include "ptrace/tracee/process.hpp"
#include "ptrace/tracee/thread.hpp"

namespace backtrail::tracee::cache {
namespace {

constexpr std::uint64_t kSigsetBytes = 8;
/// Alignment of struct rseq_cs.
constexpr std::uint64_t kSectionAlignment = 32;
/// Lowest address that can be mapped (vm.mmap_min_addr).
constexpr std::uint64_t kFirstAddress = 65536;
constexpr TraceeAddr kEndOfMemory{1ULL << 57};

bool is_code_breakpoint(const arch::cpu::DebugRegisters& registers, TraceeAddr address) {
  for (unsigned slot = 0; slot < arch::cpu::DebugRegisters::kSlots; ++slot) {
    const bool enabled = (registers.control() >> (2 * slot) & 3) != 0;
    const bool executes = (registers.control() >> (16 + 4 * slot) & 3) == 0;
    if (enabled && executes && registers.address(slot) == address.value()) return true;
  }
  return false;
}

bool shares_id_namespace(pid_t pid) {
  struct stat theirs {};
  struct stat ours {};
  return ::stat(ProcFs{}.path(pid, "ns/pid").c_str(), &theirs) == 0 &&
         ::stat("/proc/self/ns/pid", &ours) == 0 && theirs.st_dev == ours.st_dev &&
         theirs.st_ino == ours.st_ino;
}

}  // namespace

CacheSpace::CacheSpace(Process& process, std::shared_ptr<SourceStatistics> sums)
    : process_{process},
      sums_{std::move(sums)},
      pages_{[this](TraceeAddr at, std::span<std::uint8_t> out) { return read_code(at, out); }} {}

CacheSpace::~CacheSpace() {
  if (!code_) return;
  keep();
  sums_->superblocks += code_->blocks();
  sums_->translated_instructions += code_->instructions();
  sums_->code_bytes += code_->bytes_used();
}

void CacheSpace::code_written(TraceeAddr begin, TraceeAddr end) {
  pages_.forget();
  const auto lost = modules_.lose(begin, end);
  // The memory may become again what it was.
  if (!lost.empty()) mappings_current_ = false;
  drop(begin, end, lost);
}

void CacheSpace::drop(TraceeAddr begin, TraceeAddr end, const std::vector<CodeModule>& lost) {
  const std::uint64_t before = code_->drops();
  unload(lost);
  code_->drop(begin, end);
  if (code_->drops() != before) evict_running();
}

/// Interrupts threads that run. A thread that waits in a system call is at the end of its
/// superblock; one that runs, or is ready to, may be anywhere in a dropped one.
void CacheSpace::evict_running() {
  if (inside_.none()) return;
  const auto evict = [](Process& process) {
    for (const auto& thread : process.threads()) {
      if (thread->stopped() || thread->source() == nullptr) continue;
      const auto stat = ProcFs{}.stat(thread->tid());
      if (stat && (stat->state == 'R' || stat->state == 'D')) (void)thread->interrupt();
    }
  };
  evict(process_);
  for (Process* guest : guests_) evict(*guest);
}

Result<std::shared_ptr<CacheSpace>> CacheSpace::of(Thread& thread,
                                                   std::shared_ptr<SourceStatistics> sums,
                                                   std::shared_ptr<PersistentStore> store) {
  Process& process = thread.process();
  if (process.cache_space) return process.cache_space;
  BT_TRY(const ProcStatus status, ProcFs{}.status(thread.tid()));
  if (!filters_are_known(status, !process.attached(), process.filters.size())) {
    return fail(TraceErrc::kUnsupported, "seccomp");
  }
  std::shared_ptr<CacheSpace> space{new CacheSpace{process, std::move(sums)}};
  space->inline_calls_ = inline_system_calls();
  restrict_inline_calls(space->inline_calls_, process.filters);
  space->stop_by_fault_ = !let_threads_stop(process.filters);
  const auto data = limit_of(process.pid(), LimitedResource::kData);
  const bool data_counts = !data || data->rlim_cur != RLIM_INFINITY;
  if (data_counts || !allow_protected_pages(process.filters)) space->keep_unprotected(true);
  BT_TRY(space->memory_, CacheMemory::create(thread));
  space->leave_mapping_calls(space->inline_calls_);
  space->code_ = std::make_unique<CodeCache>(
      *space->memory_,
      translate::CodeSource{
          .read = [raw = space.get()](
                      TraceeAddr at,
                      std::span<std::uint8_t> out) { return raw->pages_.read(at, out); },
          .stop_before = {},
          .named = [raw = space.get()](TraceeAddr at) { raw->look_for_section(at); },
          .section_at =
              [&process](TraceeAddr at) {
                return process.restartable.beginning_at(at) != nullptr;
              }},
      CodeCache::CodeFacts{
          .left_to_cpu = [raw = space.get()](TraceeAddr at) { return raw->left_to_cpu(at); },
          .may_change =
              [raw = space.get()](TraceeAddr at) {
                const auto* range = raw->executable_.find(at);
                return range != nullptr && range->may_change && !raw->is_protected(at);
              },
          .made_here =
              [raw = space.get()](TraceeAddr at) {
                const auto* range = raw->executable_.find(at);
                return range == nullptr || range->may_change ||
                       (range->inode == 0 && range->path != kVdso);
              },
          .look_again = [raw = space.get()](TraceeAddr at) { raw->pages_.forget(at); },
          .has_no_sections =
              [raw = space.get()](TraceeAddr at) { return raw->modules_.keeps(at, at + 1); },
          .pointer_at = [&process](TraceeAddr at) -> std::optional<TraceeAddr> {
            std::uint64_t pointer = 0;
            std::array<std::uint8_t, sizeof pointer> read{};
            if (process.read_memory(at, read) != read.size()) return std::nullopt;
            std::memcpy(&pointer, read.data(), read.size());
            return TraceeAddr{pointer};
          }},
      space->inline_calls_);
  process.code_writers->look_at_files_of(process);
  write_numbers(space->inline_calls_, process.code_writers->watches_writes(),
                space->memory_->policy());
  write_opens(false, space->memory_->policy());
  space->maps_.reset(::open(ProcFs{}.path(process.pid(), "maps").c_str(), O_RDONLY | O_CLOEXEC));
  space->take_actions();
  space->begin_keeping(std::move(store));
  process.cache_space = space;
  return space;
}

void CacheSpace::take_actions() {
  const std::uint8_t* at = memory_->thread(0).scratch(CacheMemory::kScratchOffset);
  std::memcpy(&segv_action_, at, sizeof segv_action_);
  segv_action_current_ = true;
  KernelSigaction trap;
  std::memcpy(&trap, at + sizeof segv_action_, sizeof trap);
  process_.trap_action.learn(trap);
  // The remote calls that read the actions ended with a trap after reading them.
  if (trap.handler == std::bit_cast<std::uint64_t>(SIG_IGN)) process_.trap_action.damaged = true;
}

translate::UntranslatableReason CacheSpace::left_to_cpu(TraceeAddr address) const {
  if (process_.restartable.containing(address) != nullptr)
    return translate::UntranslatableReason::kSection;
  if (!executable_.contains(address)) return translate::UntranslatableReason::kMemory;
  const auto stops = [address](Process& process) {
    return process.breakpoints().contains(address) ||
           is_code_breakpoint(process.debug_registers(), address);
  };
  const bool stops_guest =
      std::any_of(guests_.begin(), guests_.end(), [&](Process* guest) { return stops(*guest); });
  return stops(process_) || stops_guest ? translate::UntranslatableReason::kBreakpoint
                                        : translate::UntranslatableReason::kNone;
}

std::size_t CacheSpace::read_code(TraceeAddr at, std::span<std::uint8_t> out) {
  const std::size_t count = process_.read_code(at, out);
  for (Process* guest : guests_) guest->breakpoints().mask_read(at, out.first(count));
  return count;
}

void CacheSpace::stop_at_breakpoints_of(Process& guest) {
  for (const TraceeAddr address : guest.breakpoints().addresses()) code_->split_at(address);
  const arch::cpu::DebugRegisters& registers = guest.debug_registers();
  for (unsigned slot = 0; slot < arch::cpu::DebugRegisters::kSlots; ++slot) {
    const TraceeAddr address{registers.address(slot)};
    if (is_code_breakpoint(registers, address)) code_->split_at(address);
  }
}

void CacheSpace::look_for_section(TraceeAddr descriptor) {
  if (descriptor.value() % kSectionAlignment != 0 || descriptor.value() < kFirstAddress) return;
  if (const auto* found = process_.restartable.learn(process_, descriptor)) leave_section(*found);
}

void CacheSpace::look_for_section_of(TraceeAddr area) {
  if (const auto* found = process_.restartable.learn_from(process_, area)) leave_section(*found);
}

void CacheSpace::leave_section(const RestartableSection& section) {
  // Include the end of the instruction that announces the section to the kernel. Other processes
  // would not know of the section, so nothing is kept.
  if (modules_.keeps(section.begin - 1, section.end)) store_.reset();
  code_->drop(section.begin - 1, section.end);
}

Result<std::size_t> CacheSpace::take_slot(Thread& thread) {
  const auto is_area = [this](std::size_t slot) {
    return slot >= memory_->first_area_part() && slot < kThreadsAtOnce;
  };
  std::size_t slot = 0;
  while (slot < kMaxThreads && (slots_.test(slot) || is_area(slot))) ++slot;
  if (slot == kMaxThreads) return fail(TraceErrc::kBusy, "log of a further thread", kMaxThreads);
  if (!std::exchange(first_thread_ready_, false)) {
    BT_CHECKED(memory_->prepare_thread(thread, slot));
    BT_CHECKED(write_ids(thread, memory_->thread(slot)));
  }
  note_way_to_stop(slot);
  slots_.set(slot);
  return slot;
}

void CacheSpace::note_way_to_stop(std::size_t slot) {
  ThreadMemory memory = memory_->thread(slot);
  memory.write(translate::Slot::kStopsByFault, stop_by_fault_ ? 1 : 0);
  memory.write(translate::Slot::kMaskAt,
               memory.page().value() + static_cast<std::uint64_t>(translate::Slot::kMask));
  memory.write(translate::Slot::kFrameAt,
               memory.page().value() + static_cast<std::uint64_t>(translate::Slot::kFrame));
}

Result<void> CacheSpace::write_ids(Thread& thread, ThreadMemory memory) {
  auto pid = static_cast<std::uint64_t>(thread.process().pid());
  auto tid = static_cast<std::uint64_t>(thread.tid());
  if (!same_ids_) same_ids_ = shares_id_namespace(process_.pid());
  // A child that shares the memory may be in another pid namespace.
  const pid_t of = thread.process().pid();
  if (!(of == process_.pid() ? *same_ids_ : shares_id_namespace(of))) {
    BT_TRY(RemoteCalls remote, RemoteCalls::begin(thread));
    BT_TRY(pid, remote.call(SYS_getpid, {}));
    BT_TRY(tid, remote.call(SYS_gettid, {}));
  }
  memory.write32(translate::Slot::kProcessId, static_cast<std::uint32_t>(pid));
  memory.write32(translate::Slot::kThreadId, static_cast<std::uint32_t>(tid));
  return {};
}

Result<std::size_t> CacheSpace::take_area(Thread& thread) {
  if (free_areas_.empty()) return memory_->add_area(thread);
  const std::size_t area = free_areas_.back();
  free_areas_.pop_back();
  return area;
}

void CacheSpace::give_slot_back(std::size_t slot) {
  memory_->set_log(slot, std::nullopt);
  slots_.reset(slot);
  inside_.reset(slot);
}

void CacheSpace::change_mappings(const MappingChange& change) {
  if (change.begin < change.end && executable_.overlaps(change.begin, change.end)) {
    pages_.forget();
    drop(change.begin, change.end, modules_.lose(change.begin, change.end));
    mappings_current_ = false;
  }
  if (change.new_code) mappings_current_ = false;
}

void CacheSpace::learn_from_log(std::span<const std::uint32_t> log) {
  const decoder::ExitTable& exits = *code_->exits();
  profile_.sample(log, [&](std::uint32_t exit, std::uint32_t next) -> std::optional<TraceeAddr> {
    const auto left = exits.find(exit);
    if (!left || left->kind != decoder::LoggedExitKind::kIndirect) return std::nullopt;
    const auto entered = exits.find(next);
    return entered ? std::optional{entered->block.start} : std::nullopt;
  });
  if (!profile_.due() || disabled() || room_wanted_ || !refresh()) return;
  profile_.begin_again(code_->retranslate_by_profile(profile_));
}

bool CacheSpace::make_room() {
  if (inside_.any()) return false;
  code_->clear();
  room_wanted_ = false;
  return true;
}

void CacheSpace::restrict_calls(const SeccompFilters& filters) {
  stop_by_fault_ |= !let_threads_stop(filters);
  for (std::size_t slot = 0; stop_by_fault_ && slot < kMaxThreads; ++slot) {
    if (slots_.test(slot)) note_way_to_stop(slot);
  }
  translate::InlineSystemCalls calls = inline_calls_;
  restrict_inline_calls(calls, filters);
  change_calls(calls);
}

void CacheSpace::change_calls(const translate::InlineSystemCalls& calls) {
  if (inline_calls_ == calls) return;
  inline_calls_ = calls;
  write_numbers(inline_calls_, process_.code_writers->watches_writes(), memory_->policy());
  if (!refresh() || !code_->renew_calls()) want_room();
}

void CacheSpace::leave_mapping_calls(translate::InlineSystemCalls& calls) const {
  if (!process_.address_limit.counts_ours()) return;
  for (const auto number : {SYS_brk, SYS_mmap}) {
    calls.at(static_cast<std::size_t>(number)) = translate::CallCheck::kNever;
  }
}

void CacheSpace::note_limit() {
  translate::InlineSystemCalls calls = inline_calls_;
  leave_mapping_calls(calls);
  change_calls(calls);
}

void CacheSpace::see_opens(bool on) {
  const bool before = sees_opens_ != 0;
  on ? ++sees_opens_ : --sees_opens_;
  if (const bool now = sees_opens_ != 0; now != before) write_opens(now, memory_->policy());
}

void CacheSpace::disable(std::string why) {
  if (why_disabled_.empty()) why_disabled_ = std::move(why);
}

void CacheSpace::watch_writes() {
  write_numbers(inline_calls_, true, memory_->policy());
  if (kernel_writes_) change_mappings({TraceeAddr{}, kEndOfMemory, true});
}

void CacheSpace::let_kernel_write() {
  kernel_writes_ = true;
  if (process_.code_writers->watches_writes()) watch_writes();
}

bool CacheSpace::file_may_change(const std::function<bool(const MapEntry&)>& is_of_it) {
  bool is_code = false;
  const std::vector<ExecutableMap::Range> ranges = executable_.ranges();
  for (const ExecutableMap::Range& range : ranges) {
    MapEntry map;
    map.inode = range.inode;
    map.path = range.path;
    const bool is_looked_at = range.may_change && !range.own && !keeps_copies(range);
    if (is_looked_at || !is_of_it(map)) continue;
    is_code = true;
    change_mappings({range.begin, range.end, true});
  }
  std::erase_if(let_go_, [&](const ExecutableMap::Range& file) {
    MapEntry map;
    map.inode = file.inode;
    map.path = file.path;
    return is_of_it(map);
  });
  return is_code;
}

Result<std::vector<MapEntry>> CacheSpace::read_maps() {
  auto maps = ProcFs{}.maps(process_.pid());
  if (maps || !maps.error().is(std::errc::permission_denied) || !maps_) return maps;
  // A process that is no longer dumpable can still be read through a file opened before.
  std::string text;
  std::array<char, 16384> part{};
  while (true) {
    const ssize_t got =
        ::pread(maps_.get(), part.data(), part.size(), static_cast<off_t>(text.size()));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_errno("read /proc/PID/maps");
    if (got == 0) return parse_maps(text);
    text.append(part.data(), static_cast<std::size_t>(got));
  }
}

Result<ExecutableMap> CacheSpace::read_mappings() {
  BT_TRY(const std::vector<MapEntry> maps, read_maps());
  CodeWriters& writers = *process_.code_writers;
  const bool all_change = all_may_change();
  CodeWriters::Looked looked{process_.pid(), maps};
  const auto may_change = [&](const MapEntry& map) {
    if (all_change || map.inode == 0) return all_change;
    const auto& known = executable_.ranges();
    const bool is_known = std::any_of(known.begin(), known.end(), [&](const auto& range) {
      return range.inode == map.inode && range.path == map.path;
    });
    return writers.may_change(map, !is_known, looked);
  };
  return ExecutableMap::from(maps, memory_->mapping(), protected_, may_change);
}

Result<void> CacheSpace::refresh() {
  if (mappings_current_) return {};
  BT_TRY(ExecutableMap now, read_mappings());
  pages_.forget();
  unload(modules_.lose_all_but(now.ranges()));
  for (const auto& [begin, end] : executable_.lost_in(now)) code_->drop(begin, end);
  executable_ = std::move(now);
  write_policy(executable_, memory_->policy());
  use_persistent_modules();
  mappings_current_ = true;
  return {};
}

Result<void> CacheSpace::learn_segv_action(Thread& thread, std::size_t slot) {
  if (segv_action_current_) return {};
  const ThreadMemory memory = memory_->thread(slot);
  const TraceeAddr scratch = memory.page() + CacheMemory::kScratchOffset;
  {
    BT_TRY(RemoteCalls remote, RemoteCalls::begin(thread));
    BT_CHECKED(remote.call(SYS_rt_sigaction, {SIGSEGV, 0, scratch.value(), kSigsetBytes}));
  }
  std::memcpy(&segv_action_, memory.scratch(CacheMemory::kScratchOffset), sizeof segv_action_);
  segv_action_current_ = true;
  return {};
}

Result<void> CacheSpace::repair_segv(Thread& thread, std::size_t slot, std::uint64_t mask) {
  const bool blocked = (mask & kSegvBit) != 0;
  const bool ignored = segv_action_.handler == std::bit_cast<std::uint64_t>(SIG_IGN);
  if (!blocked && !ignored) return {};
  const ThreadMemory memory = memory_->thread(slot);
  std::memcpy(memory.scratch(CacheMemory::kScratchOffset), &segv_action_, sizeof segv_action_);
  {
    BT_TRY(RemoteCalls remote, RemoteCalls::begin(thread));
    BT_CHECKED(remote.call(
        SYS_rt_sigaction,
        {SIGSEGV, (memory.page() + CacheMemory::kScratchOffset).value(), 0, kSigsetBytes}));
  }
  return request::write_signal_mask(thread.tid(), mask);
}

}  // namespace backtrail::tracee::cache
