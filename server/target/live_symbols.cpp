// SPDX-License-Identifier: Apache-2.0
#include "server/target/live_symbols.hpp"

#include "arch/base/log.hpp"

namespace backtrail::server {
namespace {

/// Memory of a process as the program wrote it, without breakpoints.
class MaskedMemory final : public tracee::TraceeMemory {
 public:
  explicit MaskedMemory(tracee::Process& process) : process_{process} {}
  std::size_t read(TraceeAddr address, std::span<std::uint8_t> out) override {
    return process_.read_memory(address, out);
  }
  Result<void> write(TraceeAddr address, std::span<const std::uint8_t> data) override {
    return process_.write_memory(address, data);
  }

 private:
  tracee::Process& process_;
};

}  // namespace

void LiveSymbols::try_open(tracee::Process& process, Known& known) {
  known.memory = std::make_unique<MaskedMemory>(process);
  const tracee::ThreadDbHost host{
      .pid = process.pid(),
      .isa = process.isa(),
      .memory = known.memory.get(),
      .registers = [&process](pid_t tid) -> Result<arch::cpu::UserRegs> {
        tracee::Thread* thread = process.find(tid);
        if (thread == nullptr) return fail(TraceErrc::kTraceeGone, "registers for libthread_db");
        return thread->user_regs();
      }};
  auto opened = tracee::ThreadDb::open(host, known.symbols, search_path_);
  if (opened) {
    known.library = std::move(*opened);
    log::server().debug("pid={}: {}", process.pid(), known.library->library());
  } else {
    log::server().debug("pid={}: {}", process.pid(), opened.error().message());
  }
}

std::vector<std::string> LiveSymbols::wanted(tracee::Process& process) {
  const Known& known = processes_[process.pid()];
  return known.library ? std::vector<std::string>{}
                       : tracee::ThreadDb::wanted_symbols(search_path_);
}

void LiveSymbols::resolved(tracee::Process& process,
                           const std::map<std::string, TraceeAddr>& symbols) {
  Known& known = processes_[process.pid()];
  if (known.library) return;
  for (const auto& [name, address] : symbols) known.symbols.insert_or_assign(name, address);
  try_open(process, known);
}

void LiveSymbols::set_search_path(const std::string& path) {
  search_path_ = path.empty() ? std::string{tracee::ThreadDb::kDefaultSearchPath} : path;
}

void LiveSymbols::forget(pid_t pid) {
  processes_.erase(pid);
}

std::vector<std::uint8_t> LiveSymbols::handle(tracee::ThreadId thread) {
  const auto found = processes_.find(thread.pid);
  if (found == processes_.end() || !found->second.library) return {};
  return found->second.library->handle(thread.tid).value_or(std::vector<std::uint8_t>{});
}

Result<TraceeAddr> LiveSymbols::tls_address(tracee::ThreadId thread, std::uint64_t offset,
                                            TraceeAddr link_map) {
  const auto found = processes_.find(thread.pid);
  if (found == processes_.end() || !found->second.library) {
    return fail(TraceErrc::kUnsupported, "libthread_db");
  }
  return found->second.library->tls_address(thread.tid, offset, link_map);
}

}  // namespace backtrail::server
