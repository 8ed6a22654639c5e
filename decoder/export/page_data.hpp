#pragma once
/// @file
/// A trace as the page reads it: columns of small numbers, packed.

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "decoder/calls/call.hpp"
#include "decoder/export/call_names.hpp"
#include "decoder/symbols/symbols.hpp"
#include "decoder/trace/insn_cache.hpp"

namespace backtrail::decoder {

/// Numbers as LEB128.
class NumberWriter {
 public:
  void put(std::uint64_t value);
  void put_signed(std::int64_t value);
  [[nodiscard]] const std::vector<std::uint8_t>& bytes() const { return bytes_; }

 private:
  std::vector<std::uint8_t> bytes_;
};

/// Stretches of straight-line code, each once, as the lines and the inlined functions that they
/// pass.
class PageCode {
 public:
  /// All are borrowed. Inlined functions get names among those of calls.
  PageCode(InsnCache& insns, Symbols& symbols, CallNames& names)
      : insns_{insns}, symbols_{symbols}, names_{names} {}

  /// The block from `begin` to the instruction at `last`, with it or up to it. 0: none.
  std::uint32_t block(TraceeAddr begin, TraceeAddr last, bool with_last);
  /// 0: not known.
  std::uint32_t line(TraceeAddr address) { return line_number(symbols_.line_at(address), address); }
  struct File {
    std::uint32_t text = 0;  ///< Symbols' id of its path.
    TraceeAddr address;      ///< An instruction that comes from it.
  };
  /// The files that occur, in the page's order.
  [[nodiscard]] const std::vector<File>& files() const { return files_; }
  /// Lines, scopes and blocks: count, (file, line) each; count, (scope around it, name, line that
  /// it is inlined at) each; count, (count, line ids; count, (scope, place among the lines)) each.
  [[nodiscard]] std::vector<std::uint8_t> write() const;
  /// Instructions: count, (distance of the address from the one before, text number) each; then of
  /// each block: count, distances of their numbers.
  [[nodiscard]] std::vector<std::uint8_t> write_instructions() const;
  /// Instructions' texts by number.
  [[nodiscard]] const std::vector<std::string>& texts() const { return texts_; }

 private:
  struct Stretch {
    TraceeAddr begin;
    TraceeAddr last;
    bool with_last = false;
    bool operator==(const Stretch&) const = default;
  };
  struct HashStretch {
    std::size_t operator()(const Stretch& stretch) const;
  };

  InsnCache& insns_;
  Symbols& symbols_;
  CallNames& names_;
  std::unordered_map<Stretch, std::uint32_t, HashStretch> ids_;
  struct Instruction {
    TraceeAddr address;
    std::uint32_t text = 0;
    std::uint32_t scope = 0;
  };
  /// A function inlined into another, or into the function itself.
  struct Scope {
    std::uint32_t around = 0;
    std::uint32_t name = 0;
    std::uint32_t line = 0;
    auto operator<=>(const Scope&) const = default;
  };
  /// From the line there on it is in that scope.
  struct ScopeBegin {
    std::uint32_t scope = 0;
    std::size_t line = 0;
  };
  struct Block {
    std::vector<std::uint32_t> lines;
    std::vector<ScopeBegin> scopes;  ///< Empty: all of it is inlined from nowhere.
    std::vector<std::uint32_t> instructions;
  };
  std::uint32_t instruction(TraceeAddr address);
  std::uint32_t line_number(const SourceLine& at, TraceeAddr address);
  std::uint32_t scope(TraceeAddr address);

  std::vector<Block> blocks_{Block{}};
  std::unordered_map<TraceeAddr, std::uint32_t> instruction_ids_;
  std::vector<Instruction> instructions_;
  std::unordered_map<std::string, std::uint32_t> text_ids_;
  std::vector<std::string> texts_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> line_ids_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> lines_{{}};  ///< File number, line.
  std::map<std::uint32_t, std::uint32_t> file_numbers_;
  std::map<Scope, std::uint32_t> scope_ids_;
  std::vector<Scope> scopes_{{}};
  std::vector<File> files_{{}};
};

/// Columns of calls; see page/model.js.
[[nodiscard]] std::vector<std::uint8_t> page_calls(std::span<const Call> calls, CallNames& names,
                                                   PageCode& code);

/// zlib's format in base64; empty when there is no memory.
[[nodiscard]] std::string packed_base64(std::span<const std::uint8_t> bytes);

}  // namespace backtrail::decoder
