// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/space/space_sharing.hpp"

#include <algorithm>
#include <utility>

#include "ptrace/codecache/space/cache_space.hpp"
#include "ptrace/codecache/space/code_writers.hpp"
#include "ptrace/codecache/space/stepped_memory.hpp"
#include "ptrace/tracee/process.hpp"

namespace backtrail::tracee::cache {
namespace {

void end_sharing(Process& process) {
  const auto& space = process.cache_space;
  if (!space) return;
  if (&space->process() != &process) {
    space->remove_guest(process);
  } else {
    // A vfork's child may still use the space, but this process's state is gone.
    space->disable("the process that shared its memory ended");
  }
}

/// Call before the process stops using its memory. What the recorder has mapped there for it alone
/// stays, if others use the memory.
void note_left_memory(Process& process) {
  const auto& space = process.cache_space;
  if (!space || space->memory().removed()) return;
  CodeWriters& writers = *process.code_writers;
  const auto users = writers.users_of_memory_of(process);
  const bool is_used = std::ranges::any_of(
      users, [&](const Process* user) { return user != &process && user->cache_space == space; });
  if (!is_used) writers.note_left_memory(process, space->memory().ranges());
}

class Sharing final : public ProcessObserver {
 public:
  void on_begin(Process& process) override {
    process.code_writers = std::make_shared<CodeWriters>();
    process.code_writers->add(process);
  }
  void on_inherit(Process& parent, Process& child) override {
    child.code_writers->remove(child);
    child.code_writers = parent.code_writers;
    child.code_writers->add(child);
  }
  void on_new_image(Process& process) override {
    leave_space(process);
    process.stepped_memory.reset();
    process.code_writers->note_own_memory(process);
  }
  void on_end(Process& process) override {
    note_left_memory(process);
    // The sources of the threads end later and look for the space, so it stays.
    end_sharing(process);
    process.code_writers->remove(process);
  }
};

}  // namespace

void share_space(const Process& parent, Process& child) {
  child.cache_space = parent.cache_space;
  if (child.cache_space) child.cache_space->add_guest(child);
}

void leave_space(Process& process) {
  note_left_memory(process);
  end_sharing(process);
  process.cache_space.reset();
}

void end_process(std::unique_ptr<Process> process) {
  process->end_threads();
  const auto space = std::exchange(process->cache_space, nullptr);
  if (space && &space->process() == process.get()) space->keep_process(std::move(process));
}

std::vector<CacheSpace*> spaces_in_memory_of(Process& process) {
  std::vector<CacheSpace*> spaces;
  for (const Process* user : process.code_writers->users_of_memory_of(process)) {
    CacheSpace* const space = user->cache_space.get();
    if (space != nullptr && std::ranges::find(spaces, space) == spaces.end()) {
      spaces.push_back(space);
    }
  }
  return spaces;
}

std::vector<MemoryRange> recorders_memory(Process& process) {
  std::vector<MemoryRange> ranges;
  for (CacheSpace* space : spaces_in_memory_of(process)) {
    if (space->memory().removed()) continue;
    const auto more = space->memory().ranges();
    ranges.insert(ranges.end(), more.begin(), more.end());
  }
  const auto left = process.code_writers->left_memory(process);
  ranges.insert(ranges.end(), left.begin(), left.end());
  std::ranges::sort(ranges);
  return ranges;
}

void note_unrecorded_user(Process& process) {
  for (CacheSpace* space : spaces_in_memory_of(process)) {
    space->protection().keep_unprotected(true);  // never undone
  }
}

ProcessObserver& process_observer() {
  static Sharing sharing;
  return sharing;
}

}  // namespace backtrail::tracee::cache
