// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/memory/cache_memory.hpp"

#include <algorithm>
#include <csignal>
#include <optional>
#include <string>
#include <utility>

#include <fcntl.h>
#include <linux/memfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "arch/base/check.hpp"
#include "arch/base/log.hpp"
#include "arch/base/page.hpp"
#include "ptrace/codecache/memory/program_file.hpp"
#include "ptrace/codecache/program/executable_map.hpp"
#include "ptrace/os/page_population.hpp"
#include "ptrace/os/procfs.hpp"
#include "ptrace/remote/call_batch.hpp"
#include "ptrace/remote/remote_calls.hpp"
#include "ptrace/remote/trap_guard.hpp"
#include "ptrace/tracee/process.hpp"
#include "ptrace/tracee/thread.hpp"

namespace backtrail::tracee::cache {
namespace {

namespace translate = arch::cpu::translate;
using arch::cpu::translate::Slot;

static_assert(CacheMemory::kMappedBytes + kMaxThreads / kThreadsAtOnce * kThreadsBytes <
              AddressLimit::kMostBytes);
/// The rest of a program's cached code gets a large page of its own from this size on.
constexpr std::uint64_t kWorthABigPage = kBigPageBytes / 3;
/// The first large page, which begins with the table, is worth it if this much of it is used: it
/// takes longer than a short process needs for all of its small pages.
constexpr std::uint64_t kWorthTheFirst = kBigPageBytes / 2;
/// Number of guard pages made at once: kGuardGrowth times the existing ones, but at most
/// kMostGuards.
constexpr std::size_t kGuardGrowth = 8;
constexpr std::size_t kMostGuards = kThreadsAtOnce;
constexpr std::size_t kMostGuardCallBytes = 48;
static_assert(kMostGuards * kMostGuardCallBytes + 128 <= kBatchBytes);
/// As kMostGuards, with rings of values.
constexpr std::size_t kMostRings = kMostGuards / 4;
constexpr std::size_t kMostRingCallBytes = 96;
static_assert(kMostRings * (kMostGuardCallBytes + kMostRingCallBytes) + 128 <= kBatchBytes);
/// Room left below an executable for its own mappings.
constexpr std::uint64_t kGapBytes = 1ULL << 20;
/// Number of bytes of code whose pages are populated at once, and the room from which on they are.
constexpr std::uint64_t kPopulatedAtOnce = 64UL << 10;
constexpr std::uint64_t kPopulatedAhead = 8UL << 10;
constexpr std::uint64_t kTableTop = 0x7f00'0000;
constexpr std::uint64_t kTableStep = 1ULL << 20;
constexpr std::uint64_t kSigsetBytes = 8;

/// Returns addresses for the code, best first; 0 = chosen by the kernel. Thread parts go directly
/// below the code, out of the way of the program's own mappings, which keep their usual addresses.
std::vector<std::uint64_t> code_places(const std::vector<MapEntry>& maps, const std::string& exe) {
  std::vector<std::uint64_t> places;
  for (const MapEntry& map : maps) {
    if (map.path != exe) continue;
    if (map.start > MemoryFile::kBytes + 2 * kGapBytes + kBigPageBytes) {
      places.push_back((map.start - kSharedBytes - kGapBytes) & ~(kBigPageBytes - 1));
    }
    break;
  }
  // The heap of an executable at a fixed low address grows above it, so use the highest address in
  // reach.
  places.push_back((kTableTop - kTableSpan - kSharedBytes - kGapBytes) & ~(kBigPageBytes - 1));
  places.push_back(0);
  return places;
}

}  // namespace

void CacheMemory::fill_code(std::span<const std::uint8_t> code) {
  const std::uint64_t end = kTableBytes + code.size();
  const auto is_worth_it = [&] {
    const std::uint64_t settled = file_->settled();
    return (settled == 0 ? kWorthTheFirst : settled + kWorthABigPage) <= end;
  };
  while (is_worth_it() && file_->settle_next()) {
  }
  const auto copy = [&](std::uint64_t at, std::uint64_t bytes) {
    const auto part = code.subspan(at, bytes);
    std::copy(part.begin(), part.end(), host_code().subspan(at).begin());
  };
  const LeftCode left = std::exchange(left_, {});
  if (left.code.data() == code.data() && left.code.size() == code.size()) {
    // The first calls of the program were made by code at the beginning.
    copy(0, std::min<std::uint64_t>(code.size(), kBatchBytes));
    for (const std::uint32_t at : left.changed) copy(at, LeftCode::kChangedBytes);
    return;
  }
  populate_pages({host() + kTableBytes, code.size()});
  copy(0, code.size());
}

void CacheMemory::leave_code(LeftCode left) {
  file_->left_code = std::move(left);
}

void CacheMemory::settle_code(std::uint64_t end) {
  while (file_->settled() + kBigPageBytes <= kTableBytes + end) {
    if (!file_->settle_next()) file_->leave_next_small();
  }
  if (end + kPopulatedAhead <= populated_) return;
  const std::uint64_t begin = std::max(populated_, end / kPageBytes * kPageBytes);
  populated_ = std::min(begin + kPopulatedAtOnce, kCodeBytes);
  populate_pages(host_code().subspan(begin, populated_ - begin));
}

void CacheMemory::settle_first() {
  if (file_->settled() == 0) (void)file_->settle_next();
}

void CacheMemory::fill_table(TraceeAddr target) {
  populate_pages({host(), EntryTable::first_size() * sizeof(std::uint64_t)});
  entries_.fill(target);
}

CacheMemory::~CacheMemory() {
  for (std::size_t i = 1; i < chunks_.size(); ++i) ::munmap(chunks_[i].host, kThreadsBytes);
  // Areas of the next program may be where parts of many threads were.
  if (!file_ || !file_->is_open() || guarded_ > first_part_of(kMostAreas)) return;
  file_->note_parts(guarded_);
  spare_->give(std::move(file_), std::move(program_));
}

Result<std::unique_ptr<CacheMemory>> CacheMemory::create(Thread& thread, bool records_values,
                                                         std::shared_ptr<SpareMemory> spare,
                                                         const MemoryPlaces* free_places) {
  const std::uint64_t part_bytes = records_values ? kRecordingThreadBytes : kThreadBytes;
  std::unique_ptr<CacheMemory> memory{new CacheMemory{part_bytes, std::move(spare)}};
  Process& process = thread.process();
  process.address_limit.leave_room(process.pid(), kMappedBytes);
  const auto done = memory->map(thread, free_places);
  if (done) return memory;
  (void)process.address_limit.lower(process.pid());
  return fail(done.error());
}

Result<void> CacheMemory::map(Thread& thread, const MemoryPlaces* free_places) {
  Process& process = thread.process();
  const ProcFs proc;
  std::vector<MapEntry> maps;
  if (free_places == nullptr) {
    BT_TRY(maps, proc.maps(process.pid()));
    const auto vdso = std::ranges::find(maps, kVdso, &MapEntry::path);
    if (vdso != maps.end()) process.placement.vdso = TraceeAddr{vdso->start};
  }
  BT_TRY(const BorrowedName name, BorrowedName::of(thread));
  BT_TRY(RemoteCalls remote, RemoteCalls::begin(thread));
  program_ = proc.exe(process.pid()).value_or("");
  BT_TRY(const std::uint64_t there, get_file(process, remote, name));
  left_ = std::exchange(file_->left_code, {});
  entries_ = EntryTable{host(), host() + MemoryFile::kMoreTableAt,
                        policy().data() + static_cast<std::size_t>(translate::Policy::kIndexMask)};
  auto done = map_code(remote, there,
                       free_places != nullptr ? std::vector{free_places->mapping.value()}
                                              : code_places(maps, program_));
  if (done && free_places != nullptr) {
    table_ = free_places->table;
    add_first_chunk(free_places->threads);
    done = map_rest(remote, there, true);
  } else if (done) {
    const auto is_free = place_rest(remote, there, maps);
    done = is_free ? map_rest(remote, there, *is_free) : fail(is_free.error());
  }
  if (!done) {
    (void)remote.call(SYS_close, {there});
    if (code_ != TraceeAddr{}) (void)remote.call(SYS_munmap, {mapping().value(), kSharedBytes});
  } else if (free_places == nullptr) {
    note_first_maps(std::move(maps));
  }
  return done;
}

void CacheMemory::note_first_maps(std::vector<MapEntry> maps) {
  MapEntry code;
  code.start = mapping().value();
  code.end = code.start + kSharedBytes;
  code.read = code.execute = code.shared = true;
  maps.insert(std::ranges::upper_bound(maps, code.start, {}, &MapEntry::start), std::move(code));
  first_maps_ = std::move(maps);
}

void CacheMemory::add_first_chunk(TraceeAddr base) {
  chunks_.push_back({host() + MemoryFile::kThreadsAt, base, file_->inode()});
}

Result<std::uint64_t> CacheMemory::get_file(Process& process, RemoteCalls& remote,
                                            const BorrowedName& name) {
  if (auto usable = may_use_spare(process) ? spare_or_new() : nullptr) {
    if (const auto there = ProgramFile::open_in(process, remote, name, usable->fd())) {
      file_ = std::move(usable);
      if (!SpareMemory::may_hold(*file_)) file_->close();
      return *there;
    }
    spare_->give(std::move(usable), program_);
  }
  BT_TRY(ProgramFile file, ProgramFile::make(process, remote, name, MemoryFile::kBytes));
  auto mapped = MemoryFile::map(file.take_here());
  if (!mapped) {
    (void)remote.call(SYS_close, {file.there()});
    return fail(mapped.error());
  }
  file_ = std::move(*mapped);
  file_->close();
  return file.there();
}

std::unique_ptr<MemoryFile> CacheMemory::spare_or_new() {
  if (auto spare = spare_->take(program_)) return spare;
  auto made = MemoryFile::make();
  return made ? std::move(*made) : nullptr;
}

bool CacheMemory::may_use_spare(const Process& process) const {
  // Values of another program must never be taken for this one's. A filter may end a process that
  // opens a file.
  return spare_ && !has_values() && process.filters.empty();
}

Result<void> CacheMemory::map_code(RemoteCalls& remote, std::uint64_t fd,
                                   const std::vector<std::uint64_t>& places) {
  for (const std::uint64_t place : places) {
    const std::uint64_t flags = MAP_SHARED | (place != 0 ? MAP_FIXED_NOREPLACE : 0U);
    const std::uint64_t at = page_begin(place);
    const auto got =
        remote.stepped_call(SYS_mmap, {at, kSharedBytes, PROT_READ | PROT_EXEC, flags, fd, 0});
    if (!got) continue;
    // Old kernels treat the address as a hint.
    if (place == 0 || *got == at) {
      code_ = TraceeAddr{*got} + kTableBytes;
      return {};
    }
    (void)remote.call(SYS_munmap, {*got, kSharedBytes});
  }
  return fail(TraceErrc::kUnsupported, "map translated code");
}

Result<bool> CacheMemory::place_rest(RemoteCalls& remote, std::uint64_t fd,
                                     const std::vector<MapEntry>& maps) {
  const auto is_free = [&](std::uint64_t at, std::uint64_t bytes) {
    const auto apart = [&](std::uint64_t begin, std::uint64_t end) {
      return at + bytes <= begin || end <= at;
    };
    return apart(mapping().value(), mapping().value() + kSharedBytes) &&
           std::all_of(maps.begin(), maps.end(),
                       [&](const MapEntry& map) { return apart(map.start, map.end); });
  };
  std::uint64_t table = kTableTop - kTableSpan;
  while (table > kTableStep && !is_free(table, kTableSpan)) table -= kTableStep;
  if (table <= kTableStep) return fail(TraceErrc::kUnsupported, "map the look-up table");
  table_ = TraceeAddr{table};
  const TraceeAddr threads = mapping() - kThreadsBytes;
  const bool is_clear_of_table =
      threads + kThreadsBytes <= table_ || table_ + kTableSpan <= threads;
  const bool is_free_below = is_clear_of_table && is_free(threads.value(), kThreadsBytes);
  if (is_free_below) {
    add_first_chunk(threads);
  } else {
    BT_TRY(const std::uint64_t anywhere,
           remote.call(SYS_mmap,
                       {0, kThreadsBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, kSharedBytes}));
    add_first_chunk(TraceeAddr{anywhere});
  }
  return is_free_below;
}

Result<void> CacheMemory::map_rest(RemoteCalls& remote, std::uint64_t fd, bool maps_threads) {
  const std::uint64_t table = table_.value();
  const TraceeAddr threads = chunks_.front().base;
  CallBatch batch{code_};
  constexpr std::uint64_t kFixed = MAP_SHARED | MAP_FIXED_NOREPLACE;
  const auto map_table = [&](std::uint64_t at, std::uint64_t bytes, std::uint64_t offset) {
    batch.call(SYS_mmap, {at, bytes, PROT_READ, kFixed, fd, offset}, at);
  };
  map_table(table, kFirstTableBytes, 0);
  map_table(table + kFirstTableBytes, kMoreTableBytes, MemoryFile::kMoreTableAt);
  map_table(table + translate::kEntryTableBytes, kTableBytes - kFirstTableBytes, kFirstTableBytes);
  if (maps_threads) {
    batch.call(SYS_mmap,
               {threads.value(), kThreadsBytes, PROT_READ | PROT_WRITE, kFixed, fd, kSharedBytes},
               threads.value());
  }
  for (const int advice : {MADV_DONTFORK, MADV_DONTDUMP}) {
    const auto how = static_cast<std::uint64_t>(advice);
    batch.call(SYS_madvise, {mapping().value(), kSharedBytes, how});
    batch.call(SYS_madvise, {table, kTableSpan, how});
    batch.call(SYS_madvise, {threads.value(), kThreadsBytes, how});
  }
  const TraceeAddr page = thread(0).page();
  prepare_part(batch, 0);
  const std::uint64_t actions = (page + kScratchOffset).value();
  batch.call(SYS_rt_sigaction, {SIGSEGV, 0, actions, kSigsetBytes});
  batch.call(SYS_rt_sigaction, {SIGTRAP, 0, actions + sizeof(KernelSigaction), kSigsetBytes});
  batch.store_ids(page + static_cast<std::uint32_t>(Slot::kProcessId),
                  page + static_cast<std::uint32_t>(Slot::kThreadId));
  batch.call(SYS_close, {fd});
  const CallBatch::Code code = batch.finish();
  // This code is the first user of the memory; translations overwrite it.
  BT_CHECK(code.bytes.size() <= kBatchBytes);
  std::copy(code.bytes.begin(), code.bytes.end(), host_code().begin());
  return remote.run(code);
}

Result<void> CacheMemory::remove(Thread& thread) {
  if (std::exchange(removed_, true)) return {};
  BT_TRY(RemoteCalls remote, RemoteCalls::begin(thread));
  BT_CHECKED(remote.call(SYS_munmap, {mapping().value(), kSharedBytes}));
  BT_CHECKED(remote.call(SYS_munmap, {table_.value(), kTableSpan}));
  for (const ThreadChunk& chunk : chunks_) {
    BT_CHECKED(remote.call(SYS_munmap, {chunk.base.value(), kThreadsBytes}));
  }
  return {};
}

std::vector<std::pair<TraceeAddr, TraceeAddr>> CacheMemory::ranges() const {
  std::vector<std::pair<TraceeAddr, TraceeAddr>> ranges{{mapping(), mapping() + kSharedBytes},
                                                        {table_, table_ + kTableSpan}};
  for (const ThreadChunk& chunk : chunks_) {
    ranges.emplace_back(chunk.base, chunk.base + kThreadsBytes);
  }
  return ranges;
}

bool CacheMemory::is_in_file(std::uint64_t inode) const {
  return std::ranges::any_of(chunks_,
                             [=](const ThreadChunk& chunk) { return chunk.inode == inode; });
}

ThreadMemory CacheMemory::part(std::size_t index) const {
  const ThreadChunk& chunk = chunks_.at(index / parts_at_once());
  const std::uint64_t offset = index % parts_at_once() * part_bytes_;
  return {chunk.host + offset, chunk.base + offset};
}

ThreadMemory CacheMemory::thread(std::size_t index) const {
  ThreadMemory memory = part(index);
  if (const auto log = logs_.find(index); log != logs_.end()) memory.set_log(log->second);
  return memory;
}

void CacheMemory::set_log(std::size_t index, const std::optional<LogRange>& log) {
  logs_.erase(index);
  if (log) logs_.emplace(index, *log);
}

Result<void> CacheMemory::add_chunk(Thread& thread) {
  Process& process = thread.process();
  process.address_limit.leave_room(process.pid(), kMappedBytes + chunks_.size() * kThreadsBytes);
  BT_TRY(const BorrowedName name, BorrowedName::of(thread));
  BT_TRY(RemoteCalls remote, RemoteCalls::begin(thread));
  BT_TRY(const ProgramFile file, ProgramFile::make(process, remote, name, kThreadsBytes));
  void* here = ::mmap(nullptr, kThreadsBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.here(), 0);
  auto done = here != MAP_FAILED ? map_chunk(remote, file.there()) : fail_errno("mmap");
  if (done) {
    chunks_.back().host = static_cast<std::uint8_t*>(here);
    chunks_.back().inode = inode_of(file.here());
  } else if (here != MAP_FAILED) {
    ::munmap(here, kThreadsBytes);
  }
  (void)remote.call(SYS_close, {file.there()});
  return done;
}

Result<void> CacheMemory::map_chunk(RemoteCalls& remote, std::uint64_t fd) {
  // Directly below the last chunk if that is free, or else anywhere.
  const std::uint64_t below = (chunks_.back().base - kThreadsBytes).value();
  const auto map = [&](std::uint64_t at, std::uint64_t flags) {
    return remote.call(SYS_mmap, {at, kThreadsBytes, PROT_READ | PROT_WRITE, flags, fd, 0});
  };
  auto got = map(below, MAP_SHARED | MAP_FIXED_NOREPLACE);
  if (!got) got = map(0, MAP_SHARED);
  BT_TRY(const std::uint64_t at, got);
  for (const int advice : {MADV_DONTFORK, MADV_DONTDUMP}) {
    const auto advised =
        remote.call(SYS_madvise, {at, kThreadsBytes, static_cast<std::uint64_t>(advice)});
    if (advised) continue;
    (void)remote.call(SYS_munmap, {at, kThreadsBytes});
    BT_CHECKED(advised);
  }
  chunks_.push_back({nullptr, TraceeAddr{at}});
  return {};
}

void CacheMemory::prepare_part(CallBatch& batch, std::size_t index) const {
  const ThreadMemory memory = part(index);
  batch.call(SYS_mprotect, {memory.log_end().value(), kGuardBytes, PROT_NONE});
  if (!has_values()) return;
  // An old size of 0 maps shared pages once more: mremap(2).
  const std::uint64_t ring = memory.page().value() + translate::kValuesOffset;
  const std::uint64_t end = ring + kValuesBytes;
  batch.call(SYS_mremap, {ring, 0, translate::kRepeatedBytes, MREMAP_MAYMOVE | MREMAP_FIXED, end},
             end);
}

Result<void> CacheMemory::prepare_thread(Thread& thread, std::size_t index) {
  if (index < guarded_) return {};
  const std::size_t at_once = parts_at_once();
  if (index >= chunks_.size() * at_once) BT_CHECKED(add_chunk(thread));
  if (index >= at_once) guarded_ = std::max(guarded_, at_once);
  // Prepare more each time, because a stop of a thread costs as much as many calls. Parts that
  // areas may use come last.
  const std::size_t first_of_areas = first_part_of(kMostAreas);
  const std::size_t most = has_values() ? kMostRings : kMostGuards;
  std::size_t end = std::min({guarded_ * kGuardGrowth, guarded_ + most, chunks_.size() * at_once});
  if (index < first_of_areas) end = std::min(end, first_of_areas);
  if (index < first_area_part()) end = std::min(end, first_area_part());
  CallBatch batch{code_ + kTranslationBytes};
  for (std::size_t i = guarded_; i < end; ++i) prepare_part(batch, i);
  BT_CHECKED(run(thread, batch));
  guarded_ = end;
  return {};
}

Result<void> CacheMemory::run(Thread& thread, CallBatch& batch) {
  const CallBatch::Code code = batch.finish();
  std::copy(code.bytes.begin(), code.bytes.end(), host_code().begin() + kTranslationBytes);
  BT_TRY(RemoteCalls remote, RemoteCalls::begin(thread));
  return remote.run(code);
}

Result<std::size_t> CacheMemory::add_area(Thread& thread) {
  if (areas_ == kMostAreas || guarded_ > first_part_of(areas_ + 1)) {
    return fail(TraceErrc::kBusy, "add a large log", areas_);
  }
  ++areas_;
  CallBatch batch{code_ + kTranslationBytes};
  for (std::size_t i = 0; i < kAreaSegments; ++i) {
    batch.call(SYS_mprotect, {segment(areas_ - 1, i).end.value(), kGuardBytes, PROT_NONE});
  }
  if (auto done = run(thread, batch); !done) {
    --areas_;
    return tl::unexpected{done.error()};
  }
  file_->note_areas(areas_);
  return areas_ - 1;
}

LogRange CacheMemory::segment(std::size_t area, std::size_t index) const {
  const std::uint64_t offset = MemoryFile::segment_at(area, index) - MemoryFile::kThreadsAt;
  const TraceeAddr begin = chunks_.front().base + offset;
  return {chunks_.front().host + offset, begin, begin + kSegmentBytes};
}

bool CacheMemory::prepare_segment(std::size_t area, std::size_t index) {
  return file_->prepare_segment(area, index);
}

void CacheMemory::commit_segment(Thread& thread, std::size_t area, std::size_t index) {
  while (prepare_segment(area, index)) {
  }
  const std::size_t number = area * kAreaSegments + index;
  if (committed_.test(number)) return;
  committed_.set(number);
  CallBatch batch{code_ + kTranslationBytes};
  batch.call(SYS_madvise, {segment(area, index).begin.value(), kSegmentBytes, MADV_POPULATE_WRITE});
  if (auto done = run(thread, batch); !done) {
    log::ptrace().debug("tid={}: a log's memory comes page by page: {}", thread.tid(),
                        done.error().message());
  }
}

}  // namespace backtrail::tracee::cache
