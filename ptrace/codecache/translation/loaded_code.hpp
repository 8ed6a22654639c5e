// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Translations loaded from the persistent cache, as the modules they were made of come and go.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "arch/base/address.hpp"
#include "arch/x86/translate/superblock.hpp"
#include "decoder/cachelog/exit_table.hpp"
#include "ptrace/codecache/persist/kept_code.hpp"
#include "ptrace/codecache/persist/packed_ranges.hpp"
#include "ptrace/codecache/translation/indirect_branch_table.hpp"
#include "ptrace/codecache/translation/loaded_links.hpp"

namespace backtrail::tracee::cache {

/// Decides which loaded translations are used. Those of a module are used while it is active: from
/// activate() until it is unmapped or may change, and again if it comes back.
class LoadedCode {
 public:
  /// Finds the code offset of the translation of a native address that direct exits lead to.
  using FindBody = std::function<std::optional<std::uint64_t>(TraceeAddr)>;

  /// Both references are borrowed.
  LoadedCode(IndirectBranchTable& table, LoadedLinks& links) : table_{table}, links_{links} {}

  /// Takes over loaded code; once. `exits` holds its exits. No module is active yet.
  void load(std::shared_ptr<const KeptCode> loaded,
            std::shared_ptr<const decoder::ExitTable> exits);
  /// Gives up all loaded translations for good. code() stays.
  void clear();

  /// All loaded translations, used or not; nullptr if there never were any.
  [[nodiscard]] const std::shared_ptr<const KeptCode>& code() const { return loaded_; }
  /// Whether there are loaded translations that may be used.
  [[nodiscard]] bool is_usable() const { return usable_; }
  /// The code offset of the loaded translation of `head`; nullopt if there is none or its module is
  /// not active.
  [[nodiscard]] std::optional<std::uint64_t> body(TraceeAddr head) const;

  /// The translations of a module are used from now on: indirect branches find them, its exits and
  /// those of other active modules lead to each other. `find_body` finds any translation. The
  /// module is not active; there are usable translations.
  void activate(const arch::x86::translate::Branch& module, const FindBody& find_body);
  /// Gives up the translations of all modules that overlap [begin, end), as a whole: saved code
  /// that changes is rare. Threads in them get out at their next exit. Returns false if no active
  /// module does.
  bool deactivate(TraceeAddr begin, TraceeAddr end);

 private:
  [[nodiscard]] bool is_active(TraceeAddr address) const;
  /// Links exits between a module and other active ones.
  void link_crossing(const arch::x86::translate::Branch& module, const FindBody& find_body);

  IndirectBranchTable& table_;
  LoadedLinks& links_;
  std::shared_ptr<const KeptCode> loaded_;
  std::shared_ptr<const decoder::ExitTable> exits_;
  bool usable_ = false;
  CodeRanges active_;             ///< Modules.
  CodeRanges left_;               ///< Modules that were active once.
  std::vector<KeptPad> entries_;  ///< Entries of active modules.
};

}  // namespace backtrail::tracee::cache
