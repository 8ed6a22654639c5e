#pragma once
/// @file
/// Translations that outlive their process: one program's, as another process of it can take them
/// over.
///
/// Without address randomisation a program finds itself, its libraries and the memory for
/// translations at the same addresses every time. Where they are not, nothing is taken over.

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

namespace backtrail::tracee::cache {

decoder::LoggedExitKind logged_kind(arch::x86::translate::ExitKind kind);

/// Executable memory and the file behind it, as far as a stat tells whether it is the same.
struct CodeModule {
  TraceeAddr begin;
  TraceeAddr end;
  std::uint64_t file_offset = 0;
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t size = 0;
  std::uint64_t changed_ns = 0;
  bool operator==(const CodeModule&) const = default;
};

struct KeptBlock {
  TraceeAddr head;
  std::uint32_t offset = 0;  ///< In the code.
  std::uint32_t size = 0;
  std::uint32_t first_row = 0;  ///< Among the bytes of all packed rows.
  std::uint32_t row_bytes = 0;
  std::uint32_t first_branch = 0;
  std::uint32_t branches = 0;
  std::uint32_t is_pad = 0;
  std::uint32_t unused = 0;
};

/// An Exit in less memory; its number is its place among all.
struct KeptExit {
  std::int32_t from = 0;  ///< Counted from the block's head.
  std::int32_t to = 0;
  std::uint32_t link = 0;   ///< Code offset of the rel32; 0 = cannot be linked.
  std::uint32_t block = 0;  ///< Index of its superblock.
  std::uint16_t passed = 0;
  std::uint16_t executed = 0;
  std::uint8_t kind = 0;  ///< An ExitKind.
  std::uint8_t special = 0;
  std::uint16_t unused = 0;

  /// Nothing for values that no superblock has. `link` and `block` are the caller's to set.
  static std::optional<KeptExit> of(const arch::x86::translate::Exit& exit, TraceeAddr head);
};

struct KeptPad {
  TraceeAddr head;
  std::uint32_t address = 0;  ///< Offset of the pad.
  std::uint32_t body_link = 0;
  std::uint32_t conflict_link = 0;
  std::uint32_t unused = 0;
};

using KeptBody = std::pair<TraceeAddr, std::uint32_t>;

/// Everything as it lies in a file.
template <template <typename> class Array>
struct KeptArrays {
  Array<CodeModule> modules;
  Array<std::uint8_t> code;
  Array<KeptBlock> blocks;   ///< Ascending by offset.
  Array<std::uint8_t> rows;  ///< Packed (packed_rows.hpp), block by block.
  Array<decoder::TakenBranch> branches;
  Array<KeptExit> exits;   ///< By number.
  Array<KeptPad> pads;     ///< In the order they were made.
  Array<KeptBody> bodies;  ///< Head and code offset; ascending.
};
template <typename T>
using KeptVector = std::vector<T>;
template <typename T>
using KeptSpan = std::span<const T>;
/// While it is put together, and where it lies afterwards.
using KeptParts = KeptArrays<KeptVector>;
using KeptView = KeptArrays<KeptSpan>;

/// Immutable; shared by all processes that run it.
class KeptCode {
 public:
  /// Nothing when the parts do not fit together.
  static std::shared_ptr<const KeptCode> make(KeptParts parts);

  [[nodiscard]] const KeptView& parts() const { return view_; }
  [[nodiscard]] KeptParts copy() const;
  /// What the exits mean; made at the first call. It must not outlive this.
  [[nodiscard]] const std::shared_ptr<const decoder::ExitTable>& exits() const;
  [[nodiscard]] arch::x86::translate::Exit exit(std::uint32_t number) const;
  /// Code offset of the translation of `head`.
  [[nodiscard]] std::optional<std::uint32_t> body(TraceeAddr head) const;
  /// The block or pad that a code offset lies in.
  [[nodiscard]] const KeptBlock* block_at(std::uint64_t offset) const;
  /// The row for an offset within the block.
  [[nodiscard]] std::optional<arch::x86::translate::PcRow> row(const KeptBlock& block,
                                                               std::uint64_t within) const;
  [[nodiscard]] decoder::LoggedBlock logged(const KeptBlock& block) const;

  /// As a file's content, and back; nothing for anything damaged, or made by another build. Bytes
  /// that are known to be whole are not looked through. They stay where they are, which is
  /// `owner`'s business.
  [[nodiscard]] std::vector<std::uint8_t> to_bytes(const std::string& key) const;
  static std::shared_ptr<const KeptCode> from_bytes(std::span<const std::uint8_t> bytes,
                                                    const std::string& key,
                                                    std::shared_ptr<const void> owner, bool whole);

 private:
  KeptCode() = default;
  static std::shared_ptr<const KeptCode> over(const KeptView& view,
                                              std::shared_ptr<const void> owner, bool whole);
  [[nodiscard]] bool consistent() const;

  KeptView view_;
  std::shared_ptr<const void> owner_;                 ///< Of what is viewed.
  mutable std::vector<decoder::LoggedBlock> logged_;  ///< By block.
  mutable std::shared_ptr<const decoder::ExitTable> exits_;
};

}  // namespace backtrail::tracee::cache
