// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Prepares an address space's translations for the persistent cache.

#include <cstdint>
#include <functional>
#include <span>

#include "arch/base/address.hpp"
#include "decoder/cachelog/exit_table.hpp"
#include "ptrace/codecache/persist/persistent_file.hpp"
#include "ptrace/codecache/program/code_modules.hpp"
#include "ptrace/codecache/translation/code_links.hpp"
#include "ptrace/codecache/translation/exit_links.hpp"
#include "ptrace/codecache/translation/recorded_values.hpp"
#include "ptrace/codecache/translation/superblocks.hpp"

namespace backtrail::tracee::cache {

/// The translations to save. All parts are borrowed.
struct CodeToSave {
  PersistentView older;  ///< The loaded translations; empty if there are none.
  const Superblocks& superblocks;
  const ExitLinks& exit_links;
  const decoder::ExitTable& exits;
  const RecordedValues& values;
  const CodeLinks& links;
  TraceeAddr miss;      ///< The dispatch stub for direct exits.
  TraceeAddr dispatch;  ///< The dispatch stub for indirect branches.
  bool without_calls;   ///< Leaves out superblocks that come to a system call.
};

/// Calls `use` with all parts of the file to be written. `code` holds the bytes of all translations
/// and is changed: each exit leads to its target's translation if that is in the same module,
/// otherwise to the dispatch stub; each indirect-branch entry is open. `use` is not called if an
/// exit cannot be saved, for its target is too far.
void save_code(const CodeToSave& what, const PersistentModules& modules,
               std::span<std::uint8_t> code,
               const std::function<void(const PersistentPieces&)>& use);

}  // namespace backtrail::tracee::cache
