#pragma once
/// @file
/// What is found by address, of translations that are to be kept.

#include <cstddef>
#include <optional>
#include <vector>

#include "ptrace/codecache/memory/code_block.hpp"
#include "ptrace/codecache/persist/kept_code.hpp"
#include "ptrace/codecache/persist/packed_ranges.hpp"
#include "ptrace/codecache/program/code_modules.hpp"

namespace backtrail::tracee::cache {

class KeptIndex {
 public:
  /// With what was kept before, but for modules that others have taken the place of; `more`
  /// superblocks at most are going to be added.
  KeptIndex(const KeptModules& modules, const KeptView& older, std::size_t more);

  /// A superblock that is in use, or was until its module went; the one with the highest offset
  /// stands for its head. Left out if it is not made of one module's code alone.
  void add(const CodeBlock& block, const CodeRanges& ranges);
  /// All have been added. What follows is known from then on.
  void complete();

  [[nodiscard]] const std::vector<CodeModule>& modules() const { return modules_; }
  [[nodiscard]] const std::vector<KeptBody>& bodies() const { return bodies_; }
  [[nodiscard]] const std::vector<KeptPad>& pads() const { return pads_; }
  /// The code offset that an exit of `head`'s superblock leads to from the beginning; nothing: that
  /// is found out when it is taken.
  [[nodiscard]] std::optional<std::uint32_t> linked(TraceeAddr head, TraceeAddr to) const;
  /// It will, once both modules are there: they are of the same file.
  [[nodiscard]] bool crosses(TraceeAddr head, TraceeAddr to) const;

 private:
  /// Code offset of the translation that is kept of a head.
  [[nodiscard]] std::optional<std::uint32_t> body(TraceeAddr head) const;
  [[nodiscard]] const CodeModule* module_at(TraceeAddr address) const;
  [[nodiscard]] bool is_present(const CodeModule& module) const;

  std::vector<CodeModule> modules_;  ///< Do not overlap; those that are present come first.
  std::size_t present_ = 0;
  // Sorted arrays: there are hundreds of thousands of them, at the moment when most memory is used.
  std::vector<KeptBody> bodies_;
  std::vector<KeptPad> pads_;
};

}  // namespace backtrail::tracee::cache
