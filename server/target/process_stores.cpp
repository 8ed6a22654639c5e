// SPDX-License-Identifier: Apache-2.0
#include "server/target/process_stores.hpp"

#include <algorithm>
#include <csignal>

#include "arch/base/log.hpp"
#include "ptrace/trace/thread_trace.hpp"

namespace backtrail::server {
namespace {

/// Makes the store listen to every recorded thread. Returns whether there is one.
bool listen(decoder::BranchStore& store, tracee::Process& process) {
  bool any = false;
  const auto status = store.status();
  for (const auto& thread : process.threads()) {
    tracee::ThreadTrace* trace = thread->trace().get();
    if (trace == nullptr) continue;
    any = true;
    const auto tid = static_cast<std::uint32_t>(thread->tid());
    trace->hub().add(store.listen_to(tid));
    trace->whole_hub().add(store.listen_to_whole(tid));
    if (status && status->config.sched) (void)trace->mark_switches();
  }
  return any;
}

void unlisten(decoder::BranchStore& store, tracee::Process& process) {
  for (const auto& thread : process.threads()) {
    if (!thread->trace()) continue;
    const auto tid = static_cast<std::uint32_t>(thread->tid());
    thread->trace()->hub().remove(store.listen_to(tid));
    thread->trace()->whole_hub().remove(store.listen_to_whole(tid));
  }
}

}  // namespace

decoder::BranchStore& ProcessStores::of(tracee::Process& process) {
  auto& store = stores_[process.pid()];
  if (!store) {
    store = std::make_unique<decoder::BranchStore>();
    store->on_notify([pid = process.pid()](const decoder::StoreConfig& config) {
      log::ptrace().info("pid={}: the branch store is full", pid);
      if (config.signal != 0) ::kill(pid, config.signal);
    });
  }
  listen(*store, process);
  return *store;
}

void ProcessStores::follow(tracee::Engine& engine) {
  for (const auto& [pid, store] : stores_) {
    tracee::Process* process = engine.find(pid);
    if (!store->status()) {
      if (process != nullptr) unlisten(*store, *process);
      continue;
    }
    if (process == nullptr || !listen(*store, *process)) (void)store->config({});
  }
}

bool ProcessStores::any() const {
  return std::any_of(stores_.begin(), stores_.end(),
                     [](const auto& store) { return store.second->status().has_value(); });
}

}  // namespace backtrail::server
