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

#include "arch/base/page.hpp"
#include "ptrace/codecache/space/code_writers.hpp"
#include "ptrace/codecache/space/filter_check.hpp"
#include "ptrace/codecache/space/inherited_code.hpp"
#include "ptrace/codecache/space/space_sharing.hpp"
#include "ptrace/codecache/syscalls/call_filters.hpp"
#include "ptrace/codecache/syscalls/syscall_policy.hpp"
#include "ptrace/codecache/translation/linked_program.hpp"
#include "ptrace/os/procfs.hpp"
#include "ptrace/os/ptrace_request.hpp"
#include "ptrace/os/resource_limits.hpp"
#include "ptrace/os/signal_bits.hpp"
#include "ptrace/tracee/process.hpp"
#include "ptrace/tracee/thread.hpp"

namespace backtrail::tracee::cache {
namespace {

/// Alignment of struct rseq_cs.
constexpr std::uint64_t kSectionAlignment = 32;
/// Lowest address that can be mapped (vm.mmap_min_addr).
constexpr std::uint64_t kFirstAddress = 65536;
constexpr TraceeAddr kEndOfMemory{1ULL << 57};

bool is_code_breakpoint(const arch::cpu::DebugRegisters& registers, TraceeAddr address) {
  if (registers.control() == 0) return false;
  for (unsigned slot = 0; slot < arch::cpu::DebugRegisters::kSlots; ++slot) {
    const bool enabled = (registers.control() >> (2 * slot) & 3) != 0;
    const bool executes = (registers.control() >> (16 + 4 * slot) & 3) == 0;
    if (enabled && executes && registers.address(slot) == address.value()) return true;
  }
  return false;
}

/// The program's actions as they were read when the memory was set up.
struct Actions {
  KernelSigaction segv;
  KernelSigaction trap;
};
Actions actions_in(CacheMemory& memory) {
  const std::uint8_t* at = memory.thread(0).scratch(CacheMemory::kScratchOffset);
  Actions actions;
  std::memcpy(&actions.segv, at, sizeof actions.segv);
  std::memcpy(&actions.trap, at + sizeof actions.segv, sizeof actions.trap);
  return actions;
}

}  // namespace

CacheSpace::CacheSpace(Process& process, std::shared_ptr<SourceStatistics> sums,
                       std::unique_ptr<CacheMemory> memory)
    : process_{process},
      sums_{std::move(sums)},
      maps_{::open(ProcFs{}.path(process.pid(), "maps").c_str(), O_RDONLY | O_CLOEXEC)},
      memory_{std::move(memory)},
      calls_{process, *memory_},
      threads_{process, *memory_},
      segv_action_{actions_in(*memory_).segv},
      pages_{[this](TraceeAddr at, std::span<std::uint8_t> out) { return read_code(at, out); }},
      protection_{process, executable_, pages_, protection_hooks()},
      code_{*memory_, code_source(), code_facts(), calls_.calls()},
      kept_{process, code_} {}

CacheSpace::~CacheSpace() {
  const auto saved = kept_.keep();
  if (!code_mapping_changed_) code_.leave(saved);
  sums_->superblocks += code_.blocks();
  sums_->translated_instructions += code_.instructions();
  sums_->code_bytes += code_.bytes_used();
}

void CacheSpace::keep_process(std::unique_ptr<Process> ended) {
  ended_ = std::move(ended);
}

translate::CodeSource CacheSpace::code_source() {
  return {
      .read = [this](TraceeAddr at, std::span<std::uint8_t> out) { return pages_.read(at, out); },
      .stop_before = {},
      .view = [this](TraceeAddr at) { return pages_.view(at); },
      .named =
          [this](TraceeAddr insn, TraceeAddr at) {
            // A section's descriptor is named by code of the section's own file.
            return !kept_.keeps(insn, insn + 1) && look_for_section(at);
          },
      .section_at =
          [this](TraceeAddr at) { return process_.restartable.beginning_at(at) != nullptr; }};
}

CodeCache::CodeFacts CacheSpace::code_facts() {
  return {.left_to_cpu = [this](TraceeAddr at) { return left_to_cpu(at); },
          .undisturbed = [this](TraceeAddr at) { return undisturbed(at); },
          .may_change =
              [this](TraceeAddr at) {
                const auto* range = executable_.find(at);
                return range != nullptr && range->may_change && !protection_.is_protected(at);
              },
          .made_here =
              [this](TraceeAddr at) {
                const auto* range = executable_.find(at);
                return range == nullptr || range->made_here() || is_patched(at);
              },
          .look_again = [this](TraceeAddr at) { pages_.forget(at); },
          .has_no_sections = [this](TraceeAddr at) { return kept_.keeps(at, at + 1); },
          .pointer_at = [this](TraceeAddr at) -> std::optional<TraceeAddr> {
            std::uint64_t pointer = 0;
            std::array<std::uint8_t, sizeof pointer> read{};
            if (process_.read_memory(at, read) != read.size()) return std::nullopt;
            std::memcpy(&pointer, read.data(), read.size());
            return TraceeAddr{pointer};
          }};
}

PageProtection::Hooks CacheSpace::protection_hooks() {
  return {.drop = [this](TraceeAddr begin, TraceeAddr end) { code_.drop(begin, end); },
          .evict = [this](TraceeAddr begin, TraceeAddr end) { drop(begin, end); },
          .all_may_change = [this] { return all_may_change(); },
          .has_strangers =
              [this] {
                return std::ranges::any_of(
                    process_.code_writers->users_of_memory_of(process_),
                    [this](const Process* user) { return user->cache_space.get() != this; });
              }};
}

void CacheSpace::code_written(TraceeAddr begin, TraceeAddr end) {
  pages_.forget();
  if (constant_.overlaps(begin, end)) {
    constant_.lose(begin, end);
    mappings_current_ = false;
  }
  // The memory may become again what it was.
  if (drop_modules(begin, end)) mappings_current_ = false;
}

void CacheSpace::drop(TraceeAddr begin, TraceeAddr end) {
  const std::uint64_t before = code_.drops();
  code_.drop(begin, end);
  if (code_.drops() != before) evict_running();
}

bool CacheSpace::drop_modules(TraceeAddr begin, TraceeAddr end) {
  const std::uint64_t before = code_.drops();
  const bool any = kept_.lose(begin, end);
  code_.drop(begin, end);
  if (code_.drops() != before) evict_running();
  return any;
}

/// Interrupts threads that run. A thread that waits in a system call is at the end of its
/// superblock; one that runs, or is ready to, may be anywhere in a dropped one.
void CacheSpace::evict_running() {
  if (!threads_.anybody_inside()) return;
  const auto evict = [](Process& process) {
    for (const auto& thread : process.threads()) {
      if (thread->stopped() || thread->source() == nullptr) continue;
      const auto stat = ProcFs{}.task_stat(thread->tid(), thread->tid());
      if (stat && (stat->state == 'R' || stat->state == 'D')) (void)thread->interrupt();
    }
  };
  evict(process_);
  for (Process* guest : guests_) evict(*guest);
}

Result<std::shared_ptr<CacheSpace>> CacheSpace::of(Thread& thread, const Config& config) {
  Process& process = thread.process();
  if (process.cache_space) return process.cache_space;
  BT_CHECKED(check_filters(thread));
  const auto inherited = std::exchange(process.inherited_code, nullptr);
  BT_TRY(std::unique_ptr<CacheMemory> memory,
         CacheMemory::create(thread, config.values != ValueDepth::kFree, config.spare,
                             inherited ? &inherited->places : nullptr));
  Seen seen;
  if (!inherited) {
    seen.open_files = process.code_writers->look_at_files_of(process);
    const bool alone =
        process.threads().size() == 1 && !process.code_writers->shares_memory(process);
    if (alone) seen.maps = memory->take_first_maps();
  }
  std::shared_ptr<CacheSpace> space{new CacheSpace{process, config.sums, std::move(memory)}};
  if (!let_threads_stop(process.filters)) space->threads_.stop_by_fault();
  const auto data = limit_of(process.pid(), LimitedResource::kData);
  const bool data_counts = !data || data->rlim_cur != RLIM_INFINITY;
  if (data_counts || !allow_protected_pages(process.filters)) {
    space->protection_.keep_unprotected(true);
  }
  const KernelSigaction trap = actions_in(*space->memory_).trap;
  process.trap_action.learn(trap);
  // The remote calls that read the actions ended with a trap after reading them.
  if (trap.handler == std::bit_cast<std::uint64_t>(SIG_IGN)) process.trap_action.damaged = true;
  // Only programs that the recorder has launched use spare memory.
  space->seen_from_start_ = config.spare && !process.attached();
  space->code_.record_values(config.values);
  space->kept_.begin(config.store, *space->memory_, space->calls_.calls());
  if (space->kept_.has_own()) space->profile_.expect_known_code();
  process.cache_space = space;
  space->learn_from_others();
  // Nobody may make calls inline that name the new memory.
  for (CacheSpace* each : spaces_in_memory_of(process)) each->mappings_changed();
  if (inherited) {
    space->use(inherited->executable, &inherited->modules);
  } else {
    // An error is one of the next call, too.
    (void)space->refresh(std::move(seen));
  }
  return space;
}

void CacheSpace::learn_from_others() {
  const auto others = spaces_in_memory_of(process_);
  if (std::ranges::none_of(others, &CacheSpace::kernel_writes_)) return;
  protection_.keep_unprotected(true);
  let_kernel_write();
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
      !guests_.empty() &&
      std::any_of(guests_.begin(), guests_.end(), [&](Process* guest) { return stops(*guest); });
  return stops(process_) || stops_guest ? translate::UntranslatableReason::kBreakpoint
                                        : translate::UntranslatableReason::kNone;
}

std::size_t CacheSpace::read_code(TraceeAddr at, std::span<std::uint8_t> out) {
  const std::size_t count = process_.read_code(at, out);
  for (Process* guest : guests_) guest->breakpoints().mask_read(at, out.first(count));
  return count;
}

std::size_t CacheSpace::read_unchanged(TraceeAddr at, std::span<std::uint8_t> out) {
  if (!mappings_current_ || all_may_change()) return 0;
  const auto* range = executable_.find(at);
  // The copies of protected pages may be older than their protection.
  return range != nullptr && !range->may_change ? pages_.read(at, out) : 0;
}

void CacheSpace::stop_at_breakpoints_of(Process& guest) {
  for (const TraceeAddr address : guest.breakpoints().addresses()) code_.split_at(address);
  const arch::cpu::DebugRegisters& registers = guest.debug_registers();
  for (unsigned slot = 0; slot < arch::cpu::DebugRegisters::kSlots; ++slot) {
    const TraceeAddr address{registers.address(slot)};
    if (is_code_breakpoint(registers, address)) code_.split_at(address);
  }
}

std::pair<TraceeAddr, TraceeAddr> CacheSpace::undisturbed(TraceeAddr at) const {
  const auto stops = [](Process& process) {
    return !process.breakpoints().empty() || process.debug_registers().control() != 0;
  };
  const auto* range = executable_.find(at);
  if (range == nullptr || !process_.restartable.empty() || !protection_.pages().empty() ||
      !guests_.empty() || stops(process_)) {
    return {};
  }
  return {range->begin, range->end};
}

bool CacheSpace::look_for_section(TraceeAddr descriptor) {
  if (descriptor.value() % kSectionAlignment != 0 || descriptor.value() < kFirstAddress ||
      descriptor >= kEndOfMemory) {
    return false;
  }
  const auto* found = process_.restartable.learn(process_, descriptor);
  if (found != nullptr) leave_section(*found);
  return found != nullptr;
}

void CacheSpace::look_for_section_of(TraceeAddr area) {
  if (const auto* found = process_.restartable.learn_from(process_, area)) leave_section(*found);
}

void CacheSpace::leave_section(const RestartableSection& section) {
  // Include the end of the instruction that announces the section to the kernel. Other processes
  // would not know of the section, so nothing is kept.
  if (kept_.keeps(section.begin - 1, section.end)) kept_.give_up();
  code_.drop(section.begin - 1, section.end);
}

void CacheSpace::change_mappings(const MappingChange& change) {
  change_mappings(change.begin, change.end, change);
  change_mappings(change.other_begin, change.other_end, change);
  if (change.new_code) mappings_current_ = false;
}

void CacheSpace::change_mappings(TraceeAddr begin, TraceeAddr end, const MappingChange& how) {
  code_mapping_changed_ |= memory_->overlaps_code(begin, end);
  child_has_less_ |= how.leaves_out_children;
  if (how.lets_write) {
    note_patched(begin, end);
  } else if (!how.keeps_contents && !patched_.empty()) {
    patched_.erase(patched_.lower_bound(begin.value()), patched_.lower_bound(end.value()));
  }
  if (begin < end && executable_.overlaps(begin, end)) {
    if (has_company()) note_replaced(begin, end);
    pages_.forget();
    (void)drop_modules(begin, end);
    mappings_current_ = false;
  }
  if (!how.keeps_contents && constant_.overlaps(begin, end)) {
    constant_.lose(begin, end);
    mappings_current_ = false;
  }
}

CacheSpace::ReplacedCode CacheSpace::replaced_code() const {
  ReplacedCode replaced = replaced_code_;
  replaced.of_files |= !mappings_current_ && !left_by_files_.empty();
  return replaced;
}

bool CacheSpace::keeps_code(TraceeAddr at) const {
  if (code_.exits()->code().empty() || !mappings_current_) return false;
  const ExecutableMap::Range* range = executable_.find(at);
  return range != nullptr && (range->made_here() || is_patched(at));
}

bool CacheSpace::has_company() const {
  return process_.threads_ever() != 1 || process_.code_writers->foreign_writes_possible();
}

void CacheSpace::note_patched(TraceeAddr begin, TraceeAddr end) {
  for (const ExecutableMap::Range& range : executable_.ranges()) {
    if (range.end <= begin || end <= range.begin || range.inode == 0) continue;
    const std::uint64_t behind = std::min(range.end, end).value();
    for (std::uint64_t page = page_begin(std::max(range.begin, begin).value()); page < behind;
         page += kPageBytes) {
      patched_.insert(page);
    }
    code_.keep_code();
  }
}

void CacheSpace::note_replaced(TraceeAddr begin, TraceeAddr end) {
  for (const ExecutableMap::Range& range : executable_.ranges()) {
    if (range.end <= begin || end <= range.begin) continue;
    if (range.inode == 0) {
      replaced_code_.made_here = true;
    } else if (!replaced_code_.of_files) {
      left_by_files_.emplace(std::max(range.begin, begin), std::min(range.end, end));
    }
  }
}

void CacheSpace::learn_from_log(std::span<const std::uint32_t> log) {
  code_.expect_long_run();
  const decoder::ExitTable& exits = *code_.exits();
  profile_.sample(log, [&](std::uint32_t exit, std::uint32_t next) -> std::optional<TraceeAddr> {
    const auto left = exits.find(exit);
    if (!left || left->kind != decoder::LoggedExitKind::kIndirect) return std::nullopt;
    const auto entered = exits.find(next);
    return entered ? std::optional{entered->block.start} : std::nullopt;
  });
  if (!profile_.due() || disabled() || room_wanted_ || !refresh()) return;
  profile_.begin_again(code_.retranslate_by_profile(profile_));
}

void CacheSpace::look_for_code_to_protect(Thread& thread, std::span<const std::uint32_t> log) {
  if (!disabled()) protection_.look_at_log(thread, log, *code_.exits());
}

bool CacheSpace::make_room() {
  if (threads_.anybody_inside()) return false;
  code_.clear();
  room_wanted_ = false;
  return true;
}

void CacheSpace::restrict_calls(const SeccompFilters& filters) {
  if (!let_threads_stop(filters)) threads_.stop_by_fault();
  if (calls_.restrict_to(filters)) renew_calls();
}

void CacheSpace::note_limit() {
  if (calls_.note_limit()) renew_calls();
}

void CacheSpace::renew_calls() {
  if (!refresh() || !code_.renew_calls()) want_room();
}

void CacheSpace::disable(std::string why) {
  if (why_disabled_.empty()) why_disabled_ = std::move(why);
}

void CacheSpace::watch_writes() {
  calls_.watch_writes();
  if (kernel_writes_) change_mappings({TraceeAddr{}, kEndOfMemory, true});
}

void CacheSpace::let_kernel_write() {
  kernel_writes_ = true;
  if (process_.code_writers->watches_writes()) watch_writes();
}

bool CacheSpace::all_may_change() const {
  return kernel_writes_ && process_.code_writers->watches_writes();
}

bool CacheSpace::file_may_change(const std::function<bool(const MapEntry&)>& is_of_it) {
  bool is_code = false;
  const std::vector<ExecutableMap::Range> ranges = executable_.ranges();
  for (const ExecutableMap::Range& range : ranges) {
    const bool is_looked_at = range.may_change && !range.own && !protection_.keeps_copies(range);
    if (is_looked_at || !is_of_it(range.file())) continue;
    is_code = true;
    change_mappings({range.begin, range.end, true});
  }
  protection_.files_may_change(is_of_it);
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

Result<ExecutableMap> CacheSpace::read_mappings(Seen seen) {
  if (!seen.maps) {
    BT_TRY(seen.maps, read_maps());
  }
  const std::vector<MapEntry>& maps = *seen.maps;
  CodeWriters& writers = *process_.code_writers;
  const bool all_change = all_may_change();
  CodeWriters::Looked looked{process_.pid(), maps, std::move(seen.open_files)};
  const auto may_change = [&](const MapEntry& map) {
    if (all_change || map.inode == 0) return all_change;
    return writers.may_change(map, !executable_.knows_file_of(map), looked);
  };
  return ExecutableMap::from(maps, memory_->mapping(), protection_.pages(), may_change,
                             &executable_);
}

Result<void> CacheSpace::refresh() {
  return refresh(Seen{});
}

Result<void> CacheSpace::refresh(Seen seen) {
  if (mappings_current_ && executable_.growing().empty()) return {};
  BT_CHECKED(refresh_alone(std::move(seen)));
  for (CacheSpace* space : spaces_in_memory_of(process_)) {
    // An error is one of the next call, too.
    if (!space->mappings_current_) (void)space->refresh_alone(Seen{});
  }
  return {};
}

bool CacheSpace::finds_new_code(TraceeAddr address) {
  // Code that cannot be read is never known: it is stepped, an instruction at a time. A page may
  // also have become code since it was looked at.
  const TraceeAddr page{page_begin(address.value())};
  unknown_asked_ = page == unknown_page_ ? unknown_asked_ + 1 : 0;
  unknown_page_ = page;
  if (unknown_asked_ != 0 && !std::has_single_bit(unknown_asked_)) return false;
  for (CacheSpace* space : spaces_in_memory_of(process_)) space->mappings_changed();
  return refresh() && executable_.contains(address);
}

Result<void> CacheSpace::refresh_alone(Seen seen) {
  BT_TRY(ExecutableMap now, read_mappings(std::move(seen)));
  use(std::move(now), nullptr);
  return {};
}

void CacheSpace::use(ExecutableMap now, const CodeModules* parents) {
  pages_.forget();
  kept_.lose_all_but(now.ranges());
  for (const auto& [begin, end] : executable_.lost_in(now)) code_.drop(begin, end);
  executable_ = std::move(now);
  replaced_code_.of_files |= std::ranges::any_of(left_by_files_, [this](const auto& left) {
    return executable_.overlaps(left.first, left.second);
  });
  // A guest outlives process_ at times.
  Process& user = guests_.empty() ? process_ : *guests_.front();
  write_policy(executable_, recorders_memory(user), memory_->policy());
  constant_.set(executable_.constant());
  kept_.use_modules(executable_.ranges(), parents);
  mappings_current_ = true;
}

std::shared_ptr<const InheritedCode> CacheSpace::code_of_child() const {
  if (!seen_from_start_ || child_has_less_ || process_.threads().size() != 1 || !guests_.empty() ||
      process_.code_writers->shares_memory(process_) || !mappings_current_ || all_may_change() ||
      !protection_.pages().empty()) {
    return nullptr;
  }
  return std::make_shared<const InheritedCode>(
      InheritedCode{executable_, kept_.modules(), memory_->places()});
}

Result<std::size_t> CacheSpace::translate_ahead(std::uint64_t most_bytes) {
  mappings_current_ = false;
  BT_CHECKED(refresh());
  std::vector<ExecutableMap::Range> ranges = executable_.ranges();
  std::erase_if(ranges, [this](const ExecutableMap::Range& range) {
    return range.inode == 0 || !kept_.keeps(range.begin, range.end);
  });
  const LinkedProgram program{process_.pid(), std::move(ranges)};
  return code_.translate_ahead(program.starts(), program.facts(), most_bytes);
}

}  // namespace backtrail::tracee::cache
