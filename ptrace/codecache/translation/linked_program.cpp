// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/translation/linked_program.hpp"

#include <algorithm>
#include <string_view>

#include "ptrace/codecache/program/code_module.hpp"
#include "ptrace/os/procfs.hpp"

namespace backtrail::tracee::cache {
namespace {

/// Text of a program up to this size is translated with all functions that its data points to:
/// virtual functions, tables of commands.
constexpr std::uint64_t kSmallProgram = 1ULL << 20;

bool is_linker(std::string_view path) {
  return path.substr(path.rfind('/') + 1).starts_with("ld-");
}

}  // namespace

LinkedProgram::LinkedProgram(pid_t pid, std::vector<ExecutableMap::Range> ranges) {
  const std::string exe = ProcFs{}.exe(pid).value_or("");
  // The executable comes first: its functions hide those of the same name in libraries.
  std::stable_partition(ranges.begin(), ranges.end(),
                        [&](const ExecutableMap::Range& range) { return range.path == exe; });
  for (const ExecutableMap::Range& range : ranges) {
    const auto path = file_behind(pid, range);
    if (!path) continue;
    const LinkedModule module = read_linked_module(*path, range);
    add(module);
    add_starts(module, range, range.path == exe);
  }
  link();
}

AheadFacts LinkedProgram::facts() const {
  return {.pointer_at = [this](TraceeAddr at) -> std::optional<TraceeAddr> {
            const auto found = pointers_.find(at);
            return found == pointers_.end() ? std::nullopt : std::optional{found->second};
          },
          .is_function =
              [this](TraceeAddr at) {
                return std::binary_search(functions_.begin(), functions_.end(), at);
              }};
}

void LinkedProgram::add(const LinkedModule& module) {
  functions_.insert(functions_.end(), module.functions.begin(), module.functions.end());
  for (const auto& [name, at] : module.exports) exports_.emplace(name, at);
  imports_.insert(imports_.end(), module.imports.begin(), module.imports.end());
  for (const auto& [at, to] : module.pointers) pointers_.emplace(at, to);
}

void LinkedProgram::add_starts(const LinkedModule& module, const ExecutableMap::Range& range,
                               bool executable) {
  const auto begin_at = [&](const std::vector<TraceeAddr>& more) {
    starts_.insert(starts_.end(), more.begin(), more.end());
  };
  begin_at(module.initializers);
  // The linker's functions call each other through tables; most are executed.
  if (is_linker(range.path)) begin_at(module.functions);
  if (!executable) return;
  if (module.entry) starts_.push_back(*module.entry);
  if (range.end - range.begin > kSmallProgram) return;
  for (const auto& [at, to] : module.pointers) starts_.push_back(to);
}

void LinkedProgram::link() {
  std::sort(functions_.begin(), functions_.end());
  for (const auto& [at, name] : imports_) {
    if (const auto found = exports_.find(name); found != exports_.end()) {
      pointers_.emplace(at, found->second);
    }
  }
}

}  // namespace backtrail::tracee::cache
