// SPDX-License-Identifier: Apache-2.0
#include "server/target/core_end.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "decoder/past/archive_records.hpp"
#include "server/target/memory_facts.hpp"

namespace backtrail::server {
namespace {

/// Returns true if the recorder saw that nobody but the program's only thread can have written the
/// memory that it reads.
bool was_alone(const decoder::CoreFile& core, const MemoryFacts& facts,
               const decoder::TraceArchive& archive) {
  // The kernel writes the buffers of asynchronous requests while the thread runs.
  const bool asynchronous = std::ranges::any_of(core.mappings(), [](const auto& mapping) {
    return mapping.path.find("[io_uring]") != std::string::npos ||
           mapping.path.find("/[aio]") != std::string::npos;
  });
  return !asynchronous && facts.alone() && core.threads().size() == 1 &&
         archive.threads().size() <= 1;
}

std::vector<TraceeAddr> thread_areas(const decoder::CoreFile& core) {
  std::vector<TraceeAddr> out;
  for (const decoder::CoreThread& thread : core.threads()) {
    out.emplace_back(thread.user[arch::cpu::UserReg::kFsBase]);
  }
  return out;
}

}  // namespace

CoreEnd::CoreEnd(const decoder::CoreFile& core, tracee::ProgramMemory& memory,
                 const CoreTraces& traces, const arch::cpu::GdbRegisterSet& registers)
    : core_{core},
      memory_{memory},
      traces_{traces},
      registers_{registers},
      pages_{memory, memory_facts(core), was_alone(core, memory_facts(core), traces.archive()),
             thread_areas(core)} {}

std::optional<ThreadEnd> CoreEnd::thread(tracee::ThreadId id) {
  const decoder::CoreThread* found = traces_.find(id);
  if (found == nullptr) return std::nullopt;
  ThreadEnd out;
  out.pc = found->user.pc();
  if (const auto* trace = traces_.archive().find(found->tid);
      trace != nullptr && !trace->blocks.empty()) {
    auto records = std::make_unique<decoder::ArchiveRecords>(*trace);
    out.facts = records->numbered(traces_.archive().facts(found->tid));
    out.records = std::move(records);
  } else {
    out.records = std::make_unique<decoder::VectorRecords>(std::vector<decoder::Record>{});
  }
  // The core has no registers of a thread that had ended: there are no values to begin with.
  const bool has_registers = std::ranges::any_of(
      core_.threads(), [=](const decoder::CoreThread& one) { return one.tid == found->tid; });
  if (has_registers) out.registers = arch::cpu::RawRegisters{found->user, found->xsave};
  return out;
}

std::string CoreEnd::why_no_past(tracee::ThreadId /*id*/) const {
  return "The file has no branch trace of this thread: there is no past to go back to.\n";
}

}  // namespace backtrail::server
