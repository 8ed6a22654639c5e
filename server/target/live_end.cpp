// SPDX-License-Identifier: Apache-2.0
#include "server/target/live_end.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "decoder/bts/record_ring.hpp"
#include "ptrace/os/procfs.hpp"
#include "ptrace/trace/thread_trace.hpp"
#include "ptrace/tracee/link_map.hpp"
#include "server/target/live_image.hpp"
#include "server/target/memory_facts.hpp"

namespace backtrail::server {
namespace {

using tracee::Process;
using tracee::ProcFs;
using tracee::Thread;

/// The records of a thread's history, which must not change.
class RingRecords final : public decoder::RecordSequence {
 public:
  /// `ring` is borrowed.
  explicit RingRecords(const decoder::RecordRing& ring) : ring_{ring} {}
  [[nodiscard]] std::uint64_t begin() const override { return ring_.begin(); }
  [[nodiscard]] std::uint64_t end() const override { return ring_.end(); }
  decoder::Record at(std::uint64_t number) override { return ring_.at(number); }

 private:
  const decoder::RecordRing& ring_;
};

std::vector<tracee::MapEntry> maps_of(const Process& process) {
  return ProcFs{}.maps(process.pid()).value_or(std::vector<tracee::MapEntry>{});
}

std::unique_ptr<const LiveImage> image_of(Process& process) {
  const auto auxv = ProcFs{}.auxv(process.pid());
  const unsigned pointer_bytes = process.isa() == arch::Isa::kAmd64 ? 8 : 4;
  const TraceeAddr vdso = auxv ? tracee::parse_auxv(*auxv, pointer_bytes).vdso : TraceeAddr{};
  return std::make_unique<const LiveImage>(process, maps_of(process), vdso);
}

/// Returns true if the kernel may fulfil requests of the process while its thread runs.
bool has_asynchronous_requests(const Process& process) {
  const auto is_asynchronous = [](const std::string& path) {
    constexpr std::array kNames{"[io_uring]", "/[aio]", "[userfaultfd]"};
    return std::ranges::any_of(
        kNames, [&](const char* name) { return path.find(name) != std::string::npos; });
  };
  const auto maps = maps_of(process);
  if (std::ranges::any_of(maps, is_asynchronous, &tracee::MapEntry::path)) return true;
  std::error_code error;
  std::filesystem::directory_iterator files{ProcFs{}.path(process.pid(), "fd"), error};
  for (; !error && files != std::filesystem::directory_iterator{}; files.increment(error)) {
    std::error_code unreadable;
    const auto target = std::filesystem::read_symlink(files->path(), unreadable);
    if (!unreadable && is_asynchronous(target.string())) return true;
  }
  return static_cast<bool>(error);
}

Thread* any_thread(Process& process) {
  return process.threads().empty() ? nullptr : process.threads().front().get();
}

PastPages pages_of(Process& process, tracee::ProgramMemory& memory) {
  MemoryFacts facts;
  std::vector<TraceeAddr> areas;
  if (Thread* thread = any_thread(process)) {
    facts = memory_facts(process, *thread);
    if (const auto registers = thread->user_regs()) {
      areas.emplace_back((*registers)[arch::cpu::UserReg::kFsBase]);
    }
  }
  const bool alone = !why_no_past_memory(process);
  return {memory, facts, alone, areas};
}

}  // namespace

LiveEnd::LiveEnd(Process& process, const PastChanges& changes)
    : process_{process},
      changes_{changes},
      memory_{image_of(process), {ProcFs{}.path(process.pid(), "root")}},
      pages_{pages_of(process, memory_)} {}

std::optional<ThreadEnd> LiveEnd::thread(tracee::ThreadId id) {
  Thread* thread = process_.find(id.tid);
  if (thread == nullptr || !thread->stopped()) return std::nullopt;
  const auto pc = thread->pc();
  if (!pc) return std::nullopt;
  ThreadEnd out;
  out.pc = *pc;
  tracee::ThreadTrace* trace = thread->trace().get();
  if (trace != nullptr) trace->flush();
  if (decoder::BtsHistory* past = trace == nullptr ? nullptr : trace->past()) {
    out.records = std::make_unique<RingRecords>(past->records());
    const auto facts = past->facts().since(past->records().begin());
    out.facts.assign(facts.begin(), facts.end());
  } else {
    out.records = std::make_unique<decoder::VectorRecords>(std::vector<decoder::Record>{});
  }
  if (auto registers = thread->registers()) out.registers = std::move(*registers);
  out.in_call = thread->in_syscall() || thread->syscall_will_restart();
  if (const auto changed = changes_.find(id.tid); changed != changes_.end()) {
    out.changed = changed->second;
  }
  return out;
}

std::string LiveEnd::why_no_past(tracee::ThreadId id) const {
  Thread* thread = process_.find(id.tid);
  if (thread == nullptr || !thread->trace() || thread->trace()->past() == nullptr) {
    return "No history of this thread is recorded: type monitor history on, or start the server "
           "with --from-start.\n";
  }
  return "The recording of this thread begins here.\n";
}

std::optional<decoder::PastPosition> present_place(Thread& thread) {
  tracee::ThreadTrace* trace = thread.trace().get();
  if (trace == nullptr || trace->past() == nullptr || !thread.stopped()) return std::nullopt;
  const auto pc = thread.pc();
  if (!pc) return std::nullopt;
  trace->flush();
  RingRecords records{trace->past()->records()};
  decoder::Timeline timeline{thread.process().insns(), records, *pc};
  const decoder::PastPosition newest = timeline.newest();
  // If it is not known how the thread came here, the place counts as newer than all known ones.
  const bool is_exact = records.begin() != records.end() && timeline.block(newest.block).complete;
  return is_exact ? newest : decoder::PastPosition{records.end(), 0, *pc};
}

std::optional<std::string> why_no_past_memory(Process& process) {
  using Foreign = MemoryFacts::Foreign;
  Thread* thread = any_thread(process);
  if (thread == nullptr) return "the process has ended";
  const MemoryFacts facts = memory_facts(process, *thread);
  if (facts.foreign == Foreign::kAnywhere) {
    return "a process has opened the memory for writing, or one of several threads has replaced "
           "code; registers of the past are unknown, too";
  }
  if (facts.threads != 1) return "the program has had several threads";
  if (facts.foreign == Foreign::kPossible) {
    return "system calls were not seen, of this process or of one that was let go: they may have "
           "written it";
  }
  if (has_asynchronous_requests(process)) {
    return "the kernel fulfils asynchronous requests (io_uring, aio, userfaultfd)";
  }
  if (!facts.alone()) return "/proc does not tell who shares it";
  return std::nullopt;
}

}  // namespace backtrail::server
