// SPDX-License-Identifier: Apache-2.0
// Translates ahead what a program will probably execute.

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ptrace/codecache/program/linked_module.hpp"
#include "ptrace/codecache/space/cache_space.hpp"
#include "ptrace/os/procfs.hpp"
#include "ptrace/tracee/process.hpp"

namespace backtrail::tracee::cache {
namespace {

/// Text of a program up to this size is translated with all functions that its data points to:
/// virtual functions, tables of commands.
constexpr std::uint64_t kSmallProgram = 1ULL << 20;

bool is_linker(std::string_view path) {
  return path.substr(path.rfind('/') + 1).starts_with("ld-");
}

/// The modules of a program, linked as the dynamic linker will.
class LinkedProgram {
 public:
  /// Add the executable first: of several functions with one name the first counts.
  void add(const LinkedModule& module) {
    functions_.insert(functions_.end(), module.functions.begin(), module.functions.end());
    for (const auto& [name, at] : module.exports) exports_.emplace(name, at);
    imports_.insert(imports_.end(), module.imports.begin(), module.imports.end());
    for (const auto& [at, to] : module.pointers) pointers_.emplace(at, to);
  }
  void link() {
    std::sort(functions_.begin(), functions_.end());
    for (const auto& [at, name] : imports_) {
      if (const auto found = exports_.find(name); found != exports_.end()) {
        pointers_.emplace(at, found->second);
      }
    }
  }
  [[nodiscard]] AheadFacts facts() const {
    return {.pointer_at = [this](TraceeAddr at) -> std::optional<TraceeAddr> {
              const auto found = pointers_.find(at);
              return found == pointers_.end() ? std::nullopt : std::optional{found->second};
            },
            .is_function =
                [this](TraceeAddr at) {
                  return std::binary_search(functions_.begin(), functions_.end(), at);
                }};
  }

 private:
  std::vector<TraceeAddr> functions_;
  std::unordered_map<std::string, TraceeAddr> exports_;
  std::vector<std::pair<TraceeAddr, std::string>> imports_;
  std::unordered_map<TraceeAddr, TraceeAddr> pointers_;
};

}  // namespace

Result<std::size_t> CacheSpace::translate_ahead(std::uint64_t most_bytes) {
  mappings_current_ = false;
  BT_CHECKED(refresh());
  const std::string exe = ProcFs{}.exe(process_.pid()).value_or("");
  std::vector<ExecutableMap::Range> ranges = executable_.ranges();
  std::erase_if(ranges, [this](const ExecutableMap::Range& range) {
    return range.inode == 0 || !modules_.keeps(range.begin, range.end);
  });
  std::stable_partition(ranges.begin(), ranges.end(),
                        [&](const ExecutableMap::Range& range) { return range.path == exe; });
  LinkedProgram program;
  std::vector<TraceeAddr> starts;
  const auto begin_at = [&](const std::vector<TraceeAddr>& more) {
    starts.insert(starts.end(), more.begin(), more.end());
  };
  for (const ExecutableMap::Range& range : ranges) {
    const auto path = file_behind(process_.pid(), range);
    if (!path) continue;
    const LinkedModule module = read_linked_module(*path, range);
    program.add(module);
    begin_at(module.initializers);
    // The linker's functions call each other through tables; most are executed.
    if (is_linker(range.path)) begin_at(module.functions);
    if (range.path != exe) continue;
    if (module.entry) starts.push_back(*module.entry);
    if (range.end - range.begin > kSmallProgram) continue;
    for (const auto& [at, to] : module.pointers) starts.push_back(to);
  }
  program.link();
  return code_->translate_ahead(starts, program.facts(), most_bytes);
}

}  // namespace backtrail::tracee::cache
