// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/space/page_protection.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "arch/base/log.hpp"
#include "ptrace/codecache/space/code_writers.hpp"
#include "ptrace/os/procfs.hpp"
#include "ptrace/os/unique_fd.hpp"
#include "ptrace/remote/remote_calls.hpp"
#include "ptrace/tracee/process.hpp"
#include "ptrace/tracee/thread.hpp"

namespace backtrail::tracee::cache {
namespace {

/// Number of log entries sampled to see what runs often.
constexpr std::size_t kSamples = 1000;
/// An instruction that begins this close to a page's end may reach into the next page.
constexpr std::uint64_t kReach = arch::kMaxInsnBytes - 1;
constexpr std::uint64_t kProtected = PROT_READ | PROT_EXEC;
constexpr std::uint64_t kProgram = kProtected | PROT_WRITE;

/// Bits of an entry of /proc/PID/pagemap (Documentation/admin-guide/mm/pagemap.rst).
constexpr std::uint64_t kIsPresent = 1ULL << 63;
constexpr std::uint64_t kIsOfFile = 1ULL << 61;

/// Returns true if the page of a private mapping is no longer the file's. False if unknown.
bool is_copy(pid_t tid, TraceeAddr page) {
  const UniqueFd map{::open(ProcFs{}.path(tid, "pagemap").c_str(), O_RDONLY | O_CLOEXEC)};
  std::uint64_t entry = 0;
  const auto at = static_cast<off_t>(page.value() / kPageBytes * sizeof entry);
  return map && ::pread(map.get(), &entry, sizeof entry, at) == sizeof entry &&
         (entry & kIsPresent) != 0 && (entry & kIsOfFile) == 0;
}

bool is_same_file(const ExecutableMap::Range& a, const ExecutableMap::Range& b) {
  return a.device == b.device && a.inode == b.inode && a.path == b.path;
}

bool may_be_protected(const ExecutableMap::Range& range) {
  return range.own || range.copies;
}

Result<void> protect(Thread& thread, const std::vector<ProtectedPages::Range>& ranges,
                     std::uint64_t protection) {
  if (ranges.empty()) return {};
  BT_TRY(RemoteCalls remote, RemoteCalls::begin(thread));
  for (const auto& [begin, end] : ranges) {
    BT_CHECKED(remote.call(SYS_mprotect, {begin.value(), end - begin, protection}));
  }
  return {};
}

}  // namespace

bool PageProtection::keeps_copies(const ExecutableMap::Range& range) const {
  return range.copies && !hooks_.all_may_change() &&
         std::any_of(let_go_.begin(), let_go_.end(),
                     [&](const auto& file) { return is_same_file(file, range); });
}

bool PageProtection::let_keep_copies(Thread& thread, const ExecutableMap::Range& range) {
  if (keeps_copies(range)) return true;
  MapEntry map;
  map.inode = range.inode;
  map.path = range.path;
  if (hooks_.all_may_change() || !process_.code_writers->is_let_go(map)) return false;
  // Pages may be write-protected from before the file was opened again, and a process that had it
  // open may have shortened it, which removes copies.
  const auto ranges = executable_.ranges();
  for (const auto& each : ranges) {
    if (is_same_file(each, range) && !unprotect(thread, each.begin, each.end)) return false;
  }
  let_go_.push_back(range);
  return true;
}

bool PageProtection::is_protected_page(TraceeAddr address) const {
  const auto* range = executable_.find(address);
  return range != nullptr && (range->own || keeps_copies(*range)) && protected_.is_kept(address);
}

bool PageProtection::is_protected(TraceeAddr address) const {
  if (!is_protected_page(address)) return false;
  if (is_protected_page(address + kReach)) return true;
  const auto* next = executable_.find(address + kReach);
  return next == nullptr || !next->may_change;
}

void PageProtection::look_at_log(Thread& thread, std::span<const std::uint32_t> log,
                                 const decoder::ExitTable& exits) {
  if (unprotected_ != 0 || process_.lifted_for_vfork || log.empty()) return;
  if (hooks_.has_strangers()) return;
  const auto& ranges = executable_.ranges();
  if (std::none_of(ranges.begin(), ranges.end(), may_be_protected)) return;
  if (!sample(thread, log, exits)) return;
  const std::vector<TraceeAddr> due = due_pages(thread);
  if (due.empty()) return;
  if (const auto made = write_protect(thread, due); !made) {
    log::ptrace().debug("tid={}: {}", thread.tid(), made.error().message());
  }
}

bool PageProtection::sample(Thread& thread, std::span<const std::uint32_t> log,
                            const decoder::ExitTable& exits) {
  for (std::size_t i = 0; i < kSamples; ++i) {
    const auto exit = exits.find(log[i * log.size() / kSamples]);
    if (!exit) continue;
    const TraceeAddr at = exit->block.start;
    const auto* range = executable_.find(at);
    if (range == nullptr || !may_be_protected(*range)) continue;
    // A page whose file was opened again would be slow to write and slow to run.
    const bool is_doubtful = !range->own && protected_.contains(at) && !keeps_copies(*range);
    const TraceeAddr page{page_begin(at.value())};
    if (is_doubtful && !unprotect(thread, page, page + kPageBytes)) return false;
    protected_.ran(at);
  }
  return true;
}

std::vector<TraceeAddr> PageProtection::due_pages(Thread& thread) {
  auto due = protected_.take_due([this](TraceeAddr page) {
    std::array<std::uint8_t, kPageBytes> bytes{};
    const std::size_t count = process_.read_code(page, bytes);
    const void* data = bytes.data();
    return std::hash<std::string_view>{}({static_cast<const char*>(data), count});
  });
  std::vector<ExecutableMap::Range> held;  // files open for writing, which takes long to find out
  std::erase_if(due, [&](TraceeAddr page) {
    const auto* range = executable_.find(page);
    const bool is_held = range != nullptr &&
                         std::any_of(held.begin(), held.end(),
                                     [&](const auto& each) { return is_same_file(each, *range); });
    if (!is_held && is_settled(thread, page)) return false;
    if (!is_held && range != nullptr && !keeps_copies(*range)) held.push_back(*range);
    protected_.put_off(page);
    return true;
  });
  return due;
}

void PageProtection::files_may_change(const std::function<bool(const MapEntry&)>& is_of_it) {
  std::erase_if(let_go_, [&](const ExecutableMap::Range& range) { return is_of_it(range.file()); });
}

bool PageProtection::is_settled(Thread& thread, TraceeAddr page) {
  const auto* found = executable_.find(page);
  if (found == nullptr || found->own) return true;
  const ExecutableMap::Range range = *found;
  return range.copies && let_keep_copies(thread, range) && is_copy(thread.tid(), page);
}

Result<void> PageProtection::write_protect(Thread& thread, const std::vector<TraceeAddr>& pages) {
  const std::vector<ProtectedPages::Range> ranges = join_pages(pages);
  // First of all, because a failure halfway leaves it unknown which pages are protected.
  for (const auto& range : ranges) protected_.add(range);
  if (auto made = protect(thread, ranges, kProtected); !made) {
    for (const auto& [begin, end] : ranges) (void)unprotect(thread, begin, end);
    keep_unprotected(true);  // it would fail again
    return made;
  }
  pages_.forget();
  for (const auto& [begin, end] : ranges) hooks_.drop(begin, end);
  return {};
}

Result<void> PageProtection::let_write(Thread& thread, TraceeAddr at,
                                       std::vector<WrittenPage>& written) {
  const TraceeAddr begin{page_begin(at.value())};
  if (protected_.written(at)) return unprotect(thread, begin, begin + kPageBytes);
  const bool known = std::any_of(written.begin(), written.end(),
                                 [=](const WrittenPage& page) { return page.begin == begin; });
  if (!known) {
    WrittenPage& page = written.emplace_back();
    page.begin = begin;
    protected_.open(begin);
    (void)process_.read_code(begin, page.before);
  }
  return protect(thread, {{begin, begin + kPageBytes}}, kProgram);
}

void PageProtection::note_written(Thread* thread, std::vector<WrittenPage>& written) {
  for (const WrittenPage& page : written) {
    const TraceeAddr end = page.begin + kPageBytes;
    const bool asked = protected_.close(page.begin);
    if (!protected_.contains(page.begin)) continue;
    if (thread == nullptr || !protect(*thread, {{page.begin, end}}, kProtected)) {
      hooks_.evict(page.begin, end);
      protected_.remove({page.begin, end});
      continue;
    }
    // Only now, because other threads may have written, too.
    if (asked) hooks_.evict(page.begin, end);
    drop_changed(page);
  }
  written.clear();
}

void PageProtection::drop_changed(const WrittenPage& page) {
  std::array<std::uint8_t, kPageBytes> now{};
  (void)process_.read_code(page.begin, now);
  for (std::size_t at = 0; at < now.size(); ++at) {
    if (now[at] == page.before[at]) continue;
    pages_.forget(page.begin);
    const std::size_t first = at;
    while (at < now.size() && now[at] != page.before[at]) ++at;
    hooks_.evict(page.begin + first, page.begin + at);
  }
}

Result<void> PageProtection::unprotect(Thread& thread, TraceeAddr begin, TraceeAddr end) {
  const auto ranges = protected_.within(begin, end);
  for (const auto& range : ranges) hooks_.evict(range.first, range.second);
  auto given = protect(thread, ranges, kProgram);
  // On failure the pages stay write-protected, and the next write comes here again.
  if (given || !given.error().is(TraceErrc::kBusy)) {
    for (const auto& range : ranges) protected_.remove(range);
  }
  return given;
}

Result<void> PageProtection::unprotect_all(Thread& thread) {
  return unprotect(thread, TraceeAddr{}, TraceeAddr{~std::uint64_t{0}});
}

}  // namespace backtrail::tracee::cache
