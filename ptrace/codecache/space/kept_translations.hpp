// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Translations that outlive the process: those of earlier processes of the same program are used,
/// and this process's are saved for later ones.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ptrace/codecache/memory/cache_memory.hpp"
#include "ptrace/codecache/persist/persistent_store.hpp"
#include "ptrace/codecache/program/code_modules.hpp"
#include "ptrace/codecache/program/executable_map.hpp"
#include "ptrace/codecache/translation/code_cache.hpp"

namespace backtrail::tracee {
class Process;
}  // namespace backtrail::tracee

namespace backtrail::tracee::cache {

class KeptTranslations {
 public:
  /// Borrows both.
  KeptTranslations(Process& process, CodeCache& code) : process_{process}, code_{code} {}

  /// Loads what `store` has for the program, and saves there. Call before any code is translated,
  /// but after CodeCache::record_values(): translations that record values are kept apart.
  /// Without this call, and if `store` is null, nothing is kept.
  void begin(std::shared_ptr<PersistentStore> store, const CacheMemory& memory,
             const translate::InlineSystemCalls& calls);

  /// Call when executable memory was read: uses the translations of modules that are there now.
  /// `parents`: those of the process it was forked from, if it has not run since; or null.
  void use_modules(const std::vector<ExecutableMap::Range>& ranges, const CodeModules* parents);
  [[nodiscard]] const CodeModules& modules() const { return modules_; }
  /// Returns true if translations of this program were loaded, not those of another one.
  [[nodiscard]] bool has_own() const { return code_.loaded() != nullptr && kinds_.empty(); }
  /// Unloads the modules that overlap [begin, end): they are gone or may change from now on.
  /// Returns true if there was one.
  bool lose(TraceeAddr begin, TraceeAddr end);
  /// Unloads the modules that are not among the ranges.
  void lose_all_but(const std::vector<ExecutableMap::Range>& ranges);
  /// Returns true if translations of a part of [begin, end) are kept.
  [[nodiscard]] bool keeps(TraceeAddr begin, TraceeAddr end) const {
    return modules_.keeps(begin, end);
  }

  /// Keeps nothing from now on.
  void give_up() { store_.reset(); }
  /// Call at the end: saves the translations if that is worth it, and returns them then.
  std::shared_ptr<const PersistentCode> keep();
  /// Call before a fork: saves the translations if many of them are not kept yet, because the child
  /// begins with the parent's state.
  void keep_for_child();

 private:
  /// Returns a seed for a program without translations of its own.
  std::shared_ptr<const PersistentCode> code_of_its_kind(const std::string& place);
  /// Offers the translations saved for this program as a seed for others of its kind.
  void offer_to_its_kind();
  void unload(const std::vector<CodeModule>& modules);
  std::shared_ptr<const PersistentCode> put(CodeCache::Keeping when);
  [[nodiscard]] FileIdentity identity_in_store() const;
  /// Returns how many superblocks belong to modules that are, or were, mapped here.
  [[nodiscard]] std::size_t usable_blocks(const PersistentCode& code) const;

  /// A kind of programs: those that load the same libraries, or at least the same dynamic linker.
  struct Kind {
    std::string name;
    std::uint64_t most_bytes = 0;  ///< Limit on the code of a seed for this kind.
  };

  Process& process_;
  CodeCache& code_;
  std::shared_ptr<PersistentStore> store_;  ///< Null: nothing is kept.
  std::string key_;
  std::size_t kept_meanwhile_ = 0;  ///< Number of this process's superblocks saved so far.
  std::vector<Kind> kinds_;         ///< Kinds of a program of which nothing was kept.
  std::optional<std::uint64_t> own_identity_;  ///< The executable file's.
  CodeModules modules_;
};

}  // namespace backtrail::tracee::cache
