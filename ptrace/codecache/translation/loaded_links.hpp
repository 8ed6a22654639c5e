// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Links from and to code loaded from the persistent cache.

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "arch/base/address.hpp"
#include "arch/cpu/translator.hpp"
#include "decoder/cachelog/exit_table.hpp"
#include "ptrace/codecache/persist/packed_ranges.hpp"
#include "ptrace/codecache/persist/persistent_code.hpp"
#include "ptrace/codecache/translation/code_links.hpp"
#include "ptrace/codecache/translation/superblocks.hpp"

namespace backtrail::tracee::cache {

/// Changes links from and to loaded code when a superblock at either end is dropped or replaced.
///
/// There are too many loaded exits to list them at the start of each process, as ExitLinks does,
/// and most never change. Therefore only links from loaded code to superblocks of this process, and
/// links made to loaded code, are remembered as they are made. A link is named by its code offset.
class LoadedLinks {
 public:
  /// `miss` is the dispatch stub for direct exits. All references are borrowed.
  LoadedLinks(CodeLinks& links, const Superblocks& superblocks, TraceeAddr miss);

  /// Takes over loaded code; call at most once. `exits` holds its exits.
  void load(std::shared_ptr<const PersistentCode> loaded,
            std::shared_ptr<const decoder::ExitTable> exits);
  /// Forgets all links and pending redirections.
  void clear();

  /// Makes a link lead to the translation at a code offset, and remembers it if one end is loaded.
  void lead(std::uint32_t link, std::uint64_t target);
  /// Returns the links in loaded code that lead to a superblock of this process, given by its
  /// index.
  [[nodiscard]] std::vector<std::uint32_t> leading_to(std::uint32_t index) const;
  /// Makes the links in loaded code that lead to a superblock of this process lead to `miss`.
  void release(std::uint32_t index);
  /// Makes the links in loaded code that lead to superblock `from` lead to superblock `to`.
  void move(std::uint32_t from, std::uint32_t to);

  /// Requests that all links in loaded code to `start` lead to the superblock with this index.
  /// redirect_all() carries the requests out.
  void redirect(TraceeAddr start, std::uint32_t index) { redirected_[start] = index; }
  void redirect_all();

  /// Links the loaded superblocks of a module, [begin, end), to each other as they were when the
  /// module was saved.
  void restore(const arch::cpu::translate::Branch& module);
  /// Makes all links to loaded superblocks of these modules lead to `miss`.
  void release_modules(const CodeRanges& modules);

 private:
  /// Calls look(target, link) for each loaded exit that has a link, except stale exits.
  template <typename Look>
  void for_each_loaded(Look look) const;

  CodeLinks& links_;
  const Superblocks& superblocks_;
  TraceeAddr miss_;
  std::shared_ptr<const PersistentCode> loaded_;
  std::shared_ptr<const decoder::ExitTable> exits_;
  /// Links in loaded code, by the index of the superblock of this process that they lead to.
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> from_loaded_;
  std::vector<std::uint32_t> to_loaded_;  ///< Links to loaded code that lead() made.
  std::unordered_map<TraceeAddr, std::uint32_t> redirected_;  ///< Indexes by native address.
};

}  // namespace backtrail::tracee::cache
