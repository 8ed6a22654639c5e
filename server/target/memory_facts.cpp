// SPDX-License-Identifier: Apache-2.0
#include "server/target/memory_facts.hpp"

#include <algorithm>
#include <iomanip>
#include <sstream>
#include <vector>

#include <fmt/format.h>

#include "ptrace/codecache/space/cache_space.hpp"
#include "ptrace/codecache/space/code_writers.hpp"
#include "ptrace/codecache/space/space_sharing.hpp"
#include "ptrace/os/procfs.hpp"
#include "ptrace/os/ptrace_request.hpp"

namespace backtrail::server {

using Foreign = MemoryFacts::Foreign;

namespace {

/// The kernel's own structure has 32 bytes (linux/rseq.h).
constexpr std::uint64_t kMostRseqBytes = 4096;

/// Returns the heap made by brk; nullopt if there is none. Parts may have a name of their own
/// (prctl, PR_SET_VMA), so neighbours count as well.
std::optional<MemoryFacts::Range> heap_in(const std::vector<tracee::MapEntry>& maps) {
  const auto is_heap = [](const tracee::MapEntry& map) { return map.path == "[heap]"; };
  auto first = std::ranges::find_if(maps, is_heap);
  if (first == maps.end()) return std::nullopt;
  auto last = std::find_if(maps.rbegin(), maps.rend(), is_heap).base() - 1;
  while (first != maps.begin() && (first - 1)->end == first->start && (first - 1)->inode == 0) {
    --first;
  }
  while (last + 1 != maps.end() && last->end == (last + 1)->start && (last + 1)->inode == 0) ++last;
  return MemoryFacts::Range{TraceeAddr{first->start}, TraceeAddr{last->end}};
}

bool is_number(const std::string& text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

/// Returns the two numbers of a fact, the first one in hexadecimal; nullopt if there are none.
std::optional<std::pair<std::uint64_t, std::uint64_t>> numbers_of(const std::string* fact) {
  if (fact == nullptr) return std::nullopt;
  std::pair<std::uint64_t, std::uint64_t> numbers;
  std::istringstream text{*fact};
  text >> std::setbase(0) >> numbers.first >> numbers.second;
  return text ? std::optional{numbers} : std::nullopt;
}

}  // namespace

MemoryFacts memory_facts(tracee::Process& process, tracee::Thread& thread) {
  MemoryFacts facts;
  facts.threads = process.threads_ever();
  if (process.code_writers) {
    const auto& writers = *process.code_writers;
    // /proc/PID/mem writes read-only memory, too.
    facts.foreign = writers.watches_writes()            ? Foreign::kAnywhere
                    : writers.foreign_writes_possible() ? Foreign::kPossible
                                                        : Foreign::kNone;
  }
  const auto& space = process.cache_space;
  if (space && space->replaced_code().of_files) facts.foreign = Foreign::kAnywhere;
  facts.changes_made_code = space && space->replaced_code().made_here;
  if (facts.threads != 1) return facts;
  if (const auto area = tracee::request::rseq_area(thread.tid())) {
    facts.rseq = {area->address, area->address + area->bytes};
  }
  const auto maps = tracee::ProcFs{}.maps(process.pid());
  if (!maps) return facts;
  const auto ours = tracee::cache::recorders_memory(process);
  facts.shares = std::ranges::any_of(*maps, [&](const tracee::MapEntry& map) {
    return map.shared && map.write && !tracee::cache::is_in(TraceeAddr{map.start}, ours);
  });
  facts.heap = heap_in(*maps);
  return facts;
}

MemoryFacts memory_facts(const decoder::CoreFile& core) {
  const auto fact = [&core](const char* name) {
    const auto found = core.about().find(name);
    return found == core.about().end() ? nullptr : &found->second;
  };
  MemoryFacts facts;
  if (const auto* threads = fact("threads"); threads != nullptr && is_number(*threads)) {
    // A number that is too large counts as several threads.
    facts.threads = threads->size() > 9 ? 2 : std::stoul(*threads);
  }
  if (const auto* foreign = fact("foreign-writes")) {
    facts.foreign = *foreign == "anywhere" ? Foreign::kAnywhere
                    : *foreign == "none"   ? Foreign::kNone
                                           : Foreign::kPossible;
  }
  if (const auto* shared = fact("shared-memory")) facts.shares = *shared != "none";
  if (const auto rseq = numbers_of(fact("rseq")); rseq && rseq->second < kMostRseqBytes) {
    facts.rseq = {TraceeAddr{rseq->first}, TraceeAddr{rseq->first + rseq->second}};
  }
  if (const auto heap = numbers_of(fact("heap"))) {
    facts.heap = {TraceeAddr{heap->first}, TraceeAddr{heap->second}};
  }
  if (const auto* code = fact("made-code")) facts.changes_made_code = *code != "constant";
  return facts;
}

void add_memory_facts(const MemoryFacts& facts, std::map<std::string, std::string>& about) {
  about["threads"] = std::to_string(facts.threads);
  if (facts.foreign) {
    about["foreign-writes"] = *facts.foreign == Foreign::kAnywhere   ? "anywhere"
                              : *facts.foreign == Foreign::kPossible ? "possible"
                                                                     : "none";
  }
  if (facts.rseq) {
    const auto& [begin, end] = *facts.rseq;
    about["rseq"] = fmt::format("{:#x} {}", begin.value(), end - begin);
  }
  if (facts.changes_made_code) about["made-code"] = "changed";
  if (facts.shares) about["shared-memory"] = *facts.shares ? "writable" : "none";
  if (facts.heap) {
    about["heap"] =
        fmt::format("{:#x} {:#x}", facts.heap->first.value(), facts.heap->second.value());
  }
}

}  // namespace backtrail::server
