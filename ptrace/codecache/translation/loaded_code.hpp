// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Translations loaded from the persistent cache, as their modules are mapped and unmapped.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "arch/base/address.hpp"
#include "arch/cpu/translator.hpp"
#include "decoder/cachelog/exit_table.hpp"
#include "ptrace/codecache/persist/packed_ranges.hpp"
#include "ptrace/codecache/persist/persistent_code.hpp"
#include "ptrace/codecache/translation/indirect_branch_table.hpp"
#include "ptrace/codecache/translation/loaded_links.hpp"

namespace backtrail::tracee::cache {

/// Decides which loaded translations are in use: those of active modules. A module is active from
/// activate() to deactivate(), and may be activated again.
class LoadedCode {
 public:
  /// Returns the code offset of a native address's translation for direct exits; nullopt if there
  /// is none.
  using FindTranslation = std::function<std::optional<std::uint64_t>(TraceeAddr)>;

  /// Both references are borrowed.
  LoadedCode(IndirectBranchTable& table, LoadedLinks& links) : table_{table}, links_{links} {}

  /// Takes over loaded code; call at most once. `exits` holds its exits. No module is active yet.
  void load(std::shared_ptr<const PersistentCode> loaded,
            std::shared_ptr<const decoder::ExitTable> exits);
  /// Gives up all loaded translations for good; code() still returns them.
  void clear();

  /// Returns all loaded translations, in use or not; nullptr if there never were any.
  [[nodiscard]] const std::shared_ptr<const PersistentCode>& code() const { return loaded_; }
  /// Returns true if there are loaded translations that may be used.
  [[nodiscard]] bool is_usable() const { return usable_; }
  /// Returns the code offset of the loaded translation of `start`; nullopt if there is none or its
  /// module is not active.
  [[nodiscard]] std::optional<std::uint64_t> translation(TraceeAddr start) const;

  /// Uses the translations of a module from now on: indirect branches find them, and exits between
  /// this module and other active ones are linked. `find_translation` finds translations of this
  /// process, too. The module must not be active, and is_usable() must be true.
  void activate(const arch::cpu::translate::Branch& module,
                const FindTranslation& find_translation);
  /// Drops the translations of all modules that overlap [begin, end), each module as a whole: saved
  /// code rarely changes. Threads in them get out at their next exit. Returns false if no active
  /// module overlaps.
  bool deactivate(TraceeAddr begin, TraceeAddr end);

 private:
  [[nodiscard]] bool is_active(TraceeAddr address) const;
  /// Links the exits between a module and other active ones.
  void link_crossing(const arch::cpu::translate::Branch& module,
                     const FindTranslation& find_translation);

  IndirectBranchTable& table_;
  LoadedLinks& links_;
  std::shared_ptr<const PersistentCode> loaded_;
  std::shared_ptr<const decoder::ExitTable> exits_;
  bool usable_ = false;
  CodeRanges active_;  ///< Active modules.
  CodeRanges left_;    ///< Modules that were active and are not now.
};

}  // namespace backtrail::tracee::cache
