// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Encodes a trace for the page: packed columns of small numbers.

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "decoder/calls/call.hpp"
#include "decoder/export/call_names.hpp"
#include "decoder/symbols/symbols.hpp"
#include "decoder/trace/code_history.hpp"
#include "decoder/trace/insn_cache.hpp"

namespace backtrail::decoder {

/// Writes numbers as LEB128.
class NumberWriter {
 public:
  void put(std::uint64_t value);
  void put_signed(std::int64_t value);
  [[nodiscard]] const std::vector<std::uint8_t>& bytes() const { return bytes_; }

 private:
  std::vector<std::uint8_t> bytes_;
};

/// Blocks of straight-line code, each once, with the lines and inlined functions that they pass.
class PageCode {
 public:
  /// Borrows all arguments. Names of inlined functions are added to `names`. `insns` are those at
  /// the end.
  PageCode(InsnCache& insns, Symbols& symbols, CallNames& names)
      : insns_{insns}, symbols_{symbols}, names_{names} {}

  /// Straight-line code from `begin` to the instruction at `last`, which is included if
  /// `with_last`.
  struct Stretch {
    TraceeAddr begin;
    TraceeAddr last;
    bool with_last = false;
    bool is_newest = false;  ///< The last instruction has not run yet.
    bool operator==(const Stretch&) const = default;
  };
  /// Returns the block of the code as it was executed after a record; 0 if there is none.
  /// @param past  What the thread's trace tells of its code; may be null.
  std::uint32_t block(const Stretch& stretch, CodeHistory* past = nullptr,
                      std::uint64_t record = 0);
  /// Returns the line's number; 0 if unknown.
  std::uint32_t line(TraceeAddr address) { return line_number(symbols_.line_at(address), address); }
  /// Where a line of a block begins.
  struct LineBegin {
    TraceeAddr address;
    std::size_t instruction = 0;  ///< Its index in the block.
  };
  /// Returns where each line of a block begins, as write() lists them.
  [[nodiscard]] std::vector<LineBegin> line_begins(std::uint32_t block);
  struct File {
    std::uint32_t text = 0;  ///< Text id of its path in Symbols.
    TraceeAddr address;      ///< An instruction that comes from the file.
  };
  /// Files that occur, in the page's order.
  [[nodiscard]] const std::vector<File>& files() const { return files_; }
  /// Encodes lines, scopes and blocks. Lines: count, then (file, line). Scopes: count, then (outer
  /// scope, name, line that it is inlined into). Blocks: count, then (line count, line ids, scope
  /// count, pairs (scope, index into the lines)).
  [[nodiscard]] std::vector<std::uint8_t> write() const;
  /// Encodes instructions: count, then (difference to the previous address, text number); then for
  /// each block the count and the differences of instruction numbers.
  [[nodiscard]] std::vector<std::uint8_t> write_instructions() const;
  /// Instruction texts indexed by number.
  [[nodiscard]] const std::vector<std::string>& texts() const { return texts_; }

 private:
  struct HashStretch {
    std::size_t operator()(const Stretch& stretch) const;
  };

  InsnCache& insns_;
  Symbols& symbols_;
  CallNames& names_;
  /// A block of code as it is at the end, and a place in a thread since which it has been so.
  struct Known {
    std::uint32_t id = 0;
    const CodeHistory* past = nullptr;
    std::uint64_t since = 0;
  };
  std::unordered_map<Stretch, Known, HashStretch> ids_;
  struct Instruction {
    TraceeAddr address;
    std::uint32_t text = 0;
    std::uint32_t scope = 0;
  };
  /// A function inlined into another scope, or into the function itself (`around` 0).
  struct Scope {
    std::uint32_t around = 0;
    std::uint32_t name = 0;
    std::uint32_t line = 0;
    auto operator<=>(const Scope&) const = default;
  };
  /// The block is in `scope` from the line at index `line` on.
  struct ScopeBegin {
    std::uint32_t scope = 0;
    std::size_t line = 0;
  };
  struct Block {
    std::vector<std::uint32_t> lines;
    std::vector<ScopeBegin> scopes;  ///< Empty if no instruction of the block is inlined.
    std::vector<std::uint32_t> instructions;
  };
  /// Returns the block of these instructions.
  std::uint32_t add_block(const std::vector<std::uint32_t>& instructions);
  /// Returns the number of an instruction; null: the one that is in memory at the end.
  std::uint32_t instruction(TraceeAddr address, const ExecutedInsn* executed);
  std::uint32_t text_number(const std::string& text);
  std::uint32_t line_number(const SourceLine& at, TraceeAddr address);
  std::uint32_t scope(TraceeAddr address);

  std::vector<Block> blocks_{Block{}};
  /// Blocks of code that was other code at another time, by their instructions.
  std::map<std::vector<std::uint32_t>, std::uint32_t> changed_ids_;
  std::unordered_map<TraceeAddr, std::uint32_t> instruction_ids_;
  /// Told instructions, by address and text.
  std::map<std::pair<TraceeAddr, std::uint32_t>, std::uint32_t> executed_ids_;
  std::vector<Instruction> instructions_;
  std::unordered_map<std::string, std::uint32_t> text_ids_;
  std::vector<std::string> texts_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> line_ids_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> lines_{{}};  ///< File number and line.
  std::map<std::uint32_t, std::uint32_t> file_numbers_;
  std::map<Scope, std::uint32_t> scope_ids_;
  std::vector<Scope> scopes_{{}};
  std::vector<File> files_{{}};
};

/// Encodes calls in columns; see page/model.js.
[[nodiscard]] std::vector<std::uint8_t> page_calls(std::span<const Call> calls, CallNames& names,
                                                   PageCode& code);

/// Compresses with zlib and encodes as base64; empty if memory runs out.
[[nodiscard]] std::string packed_base64(std::span<const std::uint8_t> bytes);

}  // namespace backtrail::decoder
