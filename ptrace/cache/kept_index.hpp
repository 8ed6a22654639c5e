#pragma once
/// @file
/// What is found by address, of translations that are to be kept.

#include <optional>
#include <unordered_map>
#include <vector>

#include "ptrace/cache/code_block.hpp"
#include "ptrace/cache/code_modules.hpp"
#include "ptrace/cache/kept_code.hpp"
#include "ptrace/cache/packed_ranges.hpp"

namespace backtrail::tracee::cache {

class KeptIndex {
 public:
  /// With what was kept before, but for modules that others have taken the place of.
  KeptIndex(const KeptModules& modules, const KeptView& older);

  /// A superblock that is in use, or was until its module went; the newest comes last. Left out if
  /// it is not made of one module's code alone.
  void add(const CodeBlock& block, const CodeRanges& ranges);

  [[nodiscard]] const std::vector<CodeModule>& modules() const { return modules_; }
  [[nodiscard]] std::vector<KeptBody> bodies() const;
  [[nodiscard]] std::vector<KeptPad> pads() const;
  /// The code offset that an exit of `head`'s superblock leads to from the beginning; nothing: that
  /// is found out when it is taken.
  [[nodiscard]] std::optional<std::uint32_t> linked(TraceeAddr head, TraceeAddr to) const;
  /// It will, once both modules are there: they are of the same file.
  [[nodiscard]] bool crosses(TraceeAddr head, TraceeAddr to) const;

 private:
  [[nodiscard]] const CodeModule* module_at(TraceeAddr address) const;
  [[nodiscard]] bool is_present(const CodeModule& module) const;

  std::vector<CodeModule> modules_;  ///< Do not overlap; those that are present come first.
  std::size_t present_ = 0;
  std::unordered_map<TraceeAddr, std::uint32_t> bodies_;
  std::unordered_map<TraceeAddr, std::uint32_t> pads_;
};

}  // namespace backtrail::tracee::cache
