// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/memory/value_logs.hpp"

#include <algorithm>

#include <sys/mman.h>
#include <sys/syscall.h>

#include "ptrace/codecache/memory/program_file.hpp"
#include "ptrace/remote/remote_calls.hpp"
#include "ptrace/tracee/process.hpp"
#include "ptrace/tracee/thread.hpp"

namespace backtrail::tracee::cache {
namespace {

constexpr std::uint64_t kGuard = 4096;

/// Maps the file in the program. Returns its address there.
Result<std::uint64_t> map_there(RemoteCalls& remote, std::uint64_t fd) {
  constexpr std::uint64_t kSpan = ValueLogs::kSpan;
  BT_TRY(const std::uint64_t at,
         remote.call(SYS_mmap, {0, kSpan, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0}));
  const auto prepare = [&]() -> Result<void> {
    BT_CHECKED(remote.call(SYS_madvise, {at, kSpan, MADV_DONTFORK}));
    BT_CHECKED(remote.call(SYS_madvise, {at, kSpan, MADV_DONTDUMP}));
    for (std::uint64_t end = ValueLogs::kRangeSpan; end <= kSpan; end += ValueLogs::kRangeSpan) {
      BT_CHECKED(remote.call(SYS_mprotect, {at + end - kGuard, kGuard, PROT_NONE}));
    }
    return {};
  };
  if (auto done = prepare(); !done) {
    (void)remote.call(SYS_munmap, {at, kSpan});
    return tl::unexpected{done.error()};
  }
  return at;
}

}  // namespace

std::span<std::uint64_t> ValueRange::between(TraceeAddr from, TraceeAddr to) const {
  if (from < begin || to < from || to > end) return {};
  return {host + (from - begin) / sizeof(std::uint64_t), (to - from) / sizeof(std::uint64_t)};
}

ValueLogs::~ValueLogs() {
  for (const auto& [part, mapping] : mappings_) ::munmap(mapping.host, kSpan);
}

Result<void> ValueLogs::prepare(Thread& thread, std::size_t part) {
  if (mappings_.contains(part)) return {};
  BT_TRY(const BorrowedName name, BorrowedName::of(thread));
  BT_TRY(RemoteCalls remote, RemoteCalls::begin(thread));
  BT_TRY(const ProgramFile file, ProgramFile::make(thread.process(), remote, name, kSpan));
  void* here = ::mmap(nullptr, kSpan, PROT_READ | PROT_WRITE, MAP_SHARED, file.here(), 0);
  auto there = here != MAP_FAILED ? map_there(remote, file.there())
                                  : Result<std::uint64_t>{fail_errno("mmap")};
  (void)remote.call(SYS_close, {file.there()});
  if (there) {
    mappings_[part] = {here, TraceeAddr{*there}};
    return {};
  }
  if (here != MAP_FAILED) ::munmap(here, kSpan);
  return tl::unexpected{there.error()};
}

ValueRanges ValueLogs::ranges(std::size_t part) const {
  const Mapping& mapping = mappings_.at(part);
  ValueRanges out;
  for (std::size_t i = 0; i < out.size(); ++i) {
    ValueRange& range = out.at(i);
    range.host = static_cast<std::uint64_t*>(mapping.host) + i * kRangeSpan / sizeof(std::uint64_t);
    range.begin = mapping.base + i * kRangeSpan;
    range.end = range.begin + (kRangeSpan - kGuard);
  }
  return out;
}

bool ValueLogs::has_mapped(TraceeAddr address) const {
  return std::any_of(mappings_.begin(), mappings_.end(), [address](const auto& each) {
    return address >= each.second.base && address < each.second.base + kSpan;
  });
}

Result<void> ValueLogs::remove(RemoteCalls& remote) const {
  for (const auto& [part, mapping] : mappings_) {
    BT_CHECKED(remote.call(SYS_munmap, {mapping.base.value(), kSpan}));
  }
  return {};
}

}  // namespace backtrail::tracee::cache
