// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What the persistent cache gets of an address space's translations.

#include <cstdint>
#include <functional>
#include <span>

#include "arch/base/address.hpp"
#include "decoder/cachelog/exit_table.hpp"
#include "ptrace/codecache/persist/kept_file.hpp"
#include "ptrace/codecache/program/code_modules.hpp"
#include "ptrace/codecache/translation/code_links.hpp"
#include "ptrace/codecache/translation/exit_links.hpp"
#include "ptrace/codecache/translation/superblocks.hpp"

namespace backtrail::tracee::cache {

/// The translations to save. All of it is borrowed.
struct CodeToSave {
  KeptView older;  ///< The parts that were loaded; empty if none were.
  const Superblocks& superblocks;
  const ExitLinks& exit_links;
  const decoder::ExitTable& exits;
  const CodeLinks& links;
  TraceeAddr miss;     ///< The dispatch stub for direct exits.
  bool without_calls;  ///< Superblocks that come to a system call are left out.
};

/// Calls `use` with all parts of the file to be written. `code`, which holds the bytes of all
/// translations, is changed: every exit leads to where it may lead from the beginning, and every
/// entry is open. `use` is not called if an exit cannot be saved, for its target is too far.
void save_code(const CodeToSave& what, const KeptModules& modules, std::span<std::uint8_t> code,
               const std::function<void(const KeptPieces&)>& use);

}  // namespace backtrail::tracee::cache
