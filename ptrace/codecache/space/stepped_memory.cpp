// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/space/stepped_memory.hpp"

#include <algorithm>
#include <utility>

#include "ptrace/codecache/space/code_writers.hpp"
#include "ptrace/os/procfs.hpp"
#include "ptrace/tracee/process.hpp"

namespace backtrail::tracee::cache {

std::shared_ptr<SteppedMemory> SteppedMemory::of(Process& process) {
  if (!process.stepped_memory) process.stepped_memory.reset(new SteppedMemory{process});
  return process.stepped_memory;
}

std::vector<SteppedMemory*> SteppedMemory::in_memory_of(Process& process) {
  std::vector<SteppedMemory*> out;
  for (const Process* user : process.code_writers->users_of_memory_of(process)) {
    if (user->stepped_memory) out.push_back(user->stepped_memory.get());
  }
  return out;
}

void SteppedMemory::lose(TraceeAddr begin, TraceeAddr end) {
  if (begin >= end) return;
  if (constant_.overlaps(begin, end) || executable_.overlaps(begin, end)) is_current_ = false;
  constant_.lose(begin, end);
}

void SteppedMemory::change_mappings(const MappingChange& change) {
  if (!change.keeps_contents) {
    lose(change.begin, change.end);
    lose(change.other_begin, change.other_end);
  }
  // Memory that cannot be written any more may be constant from now on.
  if (change.new_code || change.keeps_contents) is_current_ = false;
}

void SteppedMemory::written(TraceeAddr begin, TraceeAddr end) {
  lose(begin, end);
}

bool SteppedMemory::file_may_change(const std::function<bool(const MapEntry&)>& is_of_it) {
  bool is_code = false;
  const std::vector<ExecutableMap::Range> ranges = executable_.ranges();
  for (const ExecutableMap::Range& range : ranges) {
    if (!is_of_it(range.file())) continue;
    is_code = true;
    lose(range.begin, range.end);
  }
  return is_code;
}

void SteppedMemory::look_at_mappings() {
  const auto maps = ProcFs{}.maps(process_.pid());
  if (!maps) return constant_.set({});
  CodeWriters& writers = *process_.code_writers;
  CodeWriters::Looked looked{process_.pid(), *maps};
  const auto may_change = [&](const MapEntry& map) {
    return map.inode != 0 && writers.may_change(map, !executable_.knows_file_of(map), looked);
  };
  executable_ =
      ExecutableMap::from(*maps, TraceeAddr{}, ProtectedPages{}, may_change, &executable_);
  constant_.set(executable_.constant());
  is_current_ = true;
}

const ConstantRanges& SteppedMemory::constant() {
  // Nobody saw what the others did to mappings.
  if (process_.code_writers->has_unseen_run()) {
    constant_.set({});
    is_current_ = false;
  } else if (!is_current_) {
    look_at_mappings();
  }
  return constant_;
}

}  // namespace backtrail::tracee::cache
