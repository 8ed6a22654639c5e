// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Links that lead from or to code of the persistent cache.

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "arch/base/address.hpp"
#include "arch/x86/translate/superblock.hpp"
#include "decoder/cachelog/exit_table.hpp"
#include "ptrace/codecache/persist/kept_code.hpp"
#include "ptrace/codecache/persist/packed_ranges.hpp"
#include "ptrace/codecache/translation/code_links.hpp"
#include "ptrace/codecache/translation/superblocks.hpp"

namespace backtrail::tracee::cache {

/// Finds the links that must be led elsewhere when a superblock on one side goes and the code at
/// the other end, or around the link itself, was loaded.
///
/// Loaded exits are too many to be put in lists at the start of each process (ExitLinks), and most
/// never change. So only links that lead across, from loaded code to superblocks of this process or
/// from anywhere to loaded code, are remembered as they are made. Links are given by code offset.
class LoadedLinks {
 public:
  /// `miss` is the dispatch stub for direct exits. All references are borrowed.
  LoadedLinks(CodeLinks& links, const Superblocks& superblocks, TraceeAddr miss);

  /// Takes over loaded code; once. `exits` holds its exits.
  void load(std::shared_ptr<const KeptCode> loaded,
            std::shared_ptr<const decoder::ExitTable> exits);
  /// Forgets all links, and all that is to be redirected.
  void clear();

  /// Makes a link lead to the translation at a code offset.
  void lead(std::uint32_t link, std::uint64_t target);
  /// The links in loaded code that lead to a superblock of this process, by its index.
  [[nodiscard]] std::vector<std::uint32_t> leading_to(std::uint32_t index) const;
  /// Makes the links in loaded code that lead to a superblock of this process lead to `miss`.
  void release(std::uint32_t index);
  /// Makes the links in loaded code that lead to superblock `from` lead to superblock `to`.
  void move(std::uint32_t from, std::uint32_t to);

  /// All links in loaded code to `head` are to lead to the superblock with this index, from the
  /// next redirect_all() on.
  void redirect(TraceeAddr head, std::uint32_t index) { redirected_[head] = index; }
  void redirect_all();

  /// Makes the links between loaded superblocks of a module, [begin, end), lead to each other as
  /// they did when the module was saved.
  void restore(const arch::x86::translate::Branch& module);
  /// Makes all links to loaded superblocks of these modules lead to `miss`.
  void release_modules(const CodeRanges& modules);

 private:
  /// Calls look(target, link) for each loaded exit that can be linked.
  template <typename Look>
  void for_each_loaded(Look look) const;

  CodeLinks& links_;
  const Superblocks& superblocks_;
  TraceeAddr miss_;
  std::shared_ptr<const KeptCode> loaded_;
  std::shared_ptr<const decoder::ExitTable> exits_;
  /// Links in loaded code, by the index of the superblock of this process that they lead to.
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> from_loaded_;
  std::vector<std::uint32_t> to_loaded_;
  std::unordered_map<TraceeAddr, std::uint32_t> redirected_;  ///< Superblocks, by native address.
  std::uint32_t redirections_ = 0;
  /// All links in loaded code by their target, once they are needed often.
  std::vector<std::pair<TraceeAddr, std::uint32_t>> sorted_;
};

}  // namespace backtrail::tracee::cache
