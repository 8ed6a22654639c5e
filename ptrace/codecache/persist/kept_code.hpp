#pragma once
/// @file
/// Translations that outlive their process: one program's, as another process of it can take them
/// over.
///
/// Without address randomisation a program finds itself, its libraries and the memory for
/// translations at the same addresses every time. Where they are not, nothing is taken over. What
/// is found by address is made of one module's code alone, and leads to that module's translations
/// alone: each module is used, or not, for itself.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "arch/base/address.hpp"
#include "arch/x86/translate/superblock.hpp"
#include "decoder/cachelog/exit_table.hpp"
#include "ptrace/codecache/memory/code_block.hpp"
#include "ptrace/codecache/program/code_module.hpp"

namespace backtrail::tracee::cache {

/// A head and the code offset of its landing pad.
using KeptPad = std::pair<TraceeAddr, std::uint32_t>;
/// A head and the code offset of its translation.
using KeptBody = std::pair<TraceeAddr, std::uint32_t>;

/// Everything as it lies in a file.
template <template <typename> class Array>
struct KeptArrays {
  Array<CodeModule> modules;
  Array<std::uint8_t> code;
  Array<CodeBlock> blocks;   ///< Ascending by offset.
  Array<std::uint8_t> rows;  ///< Packed (packed_rows.hpp), block by block.
  Array<decoder::LoggedBlock> logged;
  Array<decoder::NearBranch> branches;
  Array<decoder::PackedExit> exits;  ///< By number, these three.
  Array<decoder::ExitWeight> weights;
  Array<ExitPlace> places;
  Array<KeptPad> pads;     ///< Ascending by offset.
  Array<KeptBody> bodies;  ///< Ascending.
  /// Exits that lead to another module of the same file.
  Array<std::uint32_t> crossing;
};
template <typename Arrays, typename Use>
bool for_each_part(Arrays& arrays, Use use) {
  return use(arrays.modules) && use(arrays.code) && use(arrays.blocks) && use(arrays.rows) &&
         use(arrays.logged) && use(arrays.branches) && use(arrays.exits) && use(arrays.weights) &&
         use(arrays.places) && use(arrays.pads) && use(arrays.bodies) && use(arrays.crossing);
}
template <typename T>
using KeptSpan = std::span<const T>;
/// Where it lies.
using KeptView = KeptArrays<KeptSpan>;

/// Immutable; shared by all processes that run it.
class KeptCode {
 public:
  [[nodiscard]] const KeptView& parts() const { return view_; }
  /// What the exits mean. `owner` keeps this alive.
  [[nodiscard]] decoder::ExitTable::Base exits(std::shared_ptr<const void> owner) const;
  /// Code offset of the translation of `head`.
  [[nodiscard]] std::optional<std::uint32_t> body(TraceeAddr head) const;
  /// The block that a code offset lies in.
  [[nodiscard]] const CodeBlock* block_at(std::uint64_t offset) const;
  /// The row for an offset within the block.
  [[nodiscard]] std::optional<arch::x86::translate::PcRow> row(const CodeBlock& block,
                                                               std::uint64_t within) const;

  /// From a file's content (kept_file.hpp); nothing for anything damaged, or made by another build.
  /// Bytes that are known to be whole are not looked through. They stay where they are, which is
  /// `owner`'s business.
  static std::shared_ptr<const KeptCode> from_bytes(std::span<const std::uint8_t> bytes,
                                                    const std::string& key,
                                                    std::shared_ptr<const void> owner, bool whole);

 private:
  KeptCode() = default;
  [[nodiscard]] bool consistent() const;

  KeptView view_;
  std::shared_ptr<const void> owner_;  ///< Of what is viewed.
};

}  // namespace backtrail::tracee::cache
