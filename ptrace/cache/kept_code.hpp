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
  std::uint32_t first_row = 0;
  std::uint32_t rows = 0;
  std::uint32_t first_branch = 0;
  std::uint32_t branches = 0;
  std::uint32_t is_pad = 0;
  std::uint32_t unused = 0;
};

/// A PcRow in half the memory.
struct KeptRow {
  std::int32_t pc = 0;  ///< Counted from the block's head.
  std::uint16_t offset = 0;
  std::int16_t stack_add = 0;
  std::uint8_t passed = 0;
  std::uint8_t flags = 0;
  std::uint16_t unused = 0;

  /// Nothing for values that no superblock has.
  static std::optional<KeptRow> of(const arch::x86::translate::PcRow& row, TraceeAddr head);
  [[nodiscard]] arch::x86::translate::PcRow row(TraceeAddr head) const;
};

struct KeptExit {
  arch::x86::translate::Exit exit;
  std::uint64_t link = 0;   ///< Code offset of the rel32; 0 = cannot be linked.
  std::uint32_t block = 0;  ///< Index of its superblock.
  std::uint32_t kind = 0;   ///< A decoder::LoggedExitKind.
};

struct KeptPad {
  TraceeAddr head;
  std::uint64_t address = 0;  ///< Offset of the pad.
  std::uint64_t body_link = 0;
  std::uint64_t conflict_link = 0;
};

/// Everything as it lies in a file.
struct KeptParts {
  std::vector<CodeModule> modules;
  std::vector<std::uint8_t> code;
  std::vector<KeptBlock> blocks;  ///< Ascending by offset.
  std::vector<KeptRow> rows;
  std::vector<decoder::TakenBranch> branches;
  std::vector<KeptExit> exits;                               ///< By number.
  std::vector<KeptPad> pads;                                 ///< In the order they were made.
  std::vector<std::pair<TraceeAddr, std::uint32_t>> bodies;  ///< Head and code offset; ascending.
};

/// Immutable; shared by all processes that run it.
class KeptCode {
 public:
  /// Nothing when the parts do not fit together.
  static std::shared_ptr<const KeptCode> make(KeptParts parts);

  [[nodiscard]] const KeptParts& parts() const { return parts_; }
  [[nodiscard]] const std::shared_ptr<const decoder::ExitTable>& exits() const { return exits_; }
  /// Code offset of the translation of `head`.
  [[nodiscard]] std::optional<std::uint32_t> body(TraceeAddr head) const;
  /// The block or pad that a code offset lies in.
  [[nodiscard]] const KeptBlock* block_at(std::uint64_t offset) const;
  /// The row for an offset within the block.
  [[nodiscard]] std::optional<arch::x86::translate::PcRow> row(const KeptBlock& block,
                                                               std::uint64_t within) const;
  [[nodiscard]] const decoder::LoggedBlock* logged(const KeptBlock& block) const;

  /// As a file's content, and back; nothing for anything damaged, or made by another build.
  [[nodiscard]] std::vector<std::uint8_t> to_bytes(const std::string& key) const;
  static std::shared_ptr<const KeptCode> from_bytes(std::span<const std::uint8_t> bytes,
                                                    const std::string& key);

 private:
  KeptCode() = default;
  [[nodiscard]] bool consistent() const;

  KeptParts parts_;
  std::vector<decoder::LoggedBlock> logged_;  ///< By block.
  std::shared_ptr<const decoder::ExitTable> exits_;
};

}  // namespace backtrail::tracee::cache
