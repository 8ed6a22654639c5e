// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Reads an ELF core of Linux on x86: whole, cut off, or damaged.
///
/// Entry type: CoreFile. It trusts nothing in the file: sizes are checked against the bytes
/// present, and unreadable parts are left out.

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "arch/base/result.hpp"
#include "arch/isa.hpp"
#include "decoder/corefile/core_format.hpp"
#include "decoder/corefile/note_reader.hpp"

namespace backtrail::decoder {

struct CoreSegment {
  TraceeAddr start;
  std::uint64_t memory_bytes = 0;
  std::uint32_t flags = 0;              ///< PF_* bits.
  std::span<const std::uint8_t> bytes;  ///< The part present in the file.
};

class CoreFile {
 public:
  /// Parses a core; borrows `file`. Error kMalformed: not an ELF core of this CPU family (detail is
  /// the first problem and its offset), or a core without threads.
  static Result<CoreFile> parse(std::span<const std::uint8_t> file);

  [[nodiscard]] arch::Isa isa() const { return isa_; }
  [[nodiscard]] const CoreProcess& process() const { return notes_.process; }
  /// Returns the threads, at least one. The thread that died is first.
  [[nodiscard]] const std::vector<CoreThread>& threads() const { return notes_.threads; }
  [[nodiscard]] const std::vector<std::uint8_t>& auxv() const { return notes_.auxv; }
  /// Returns the value of an entry of the auxiliary vector (AT_ENTRY and others); 0 if there is
  /// none.
  [[nodiscard]] std::uint64_t auxv_value(std::uint64_t wanted) const;
  [[nodiscard]] const std::vector<CoreMapping>& mappings() const { return notes_.mappings; }
  /// Sorted by address.
  [[nodiscard]] const std::vector<CoreSegment>& segments() const { return segments_; }
  /// Returns true if the file ends before something that it refers to.
  [[nodiscard]] bool truncated() const { return truncated_; }

  /// Copies bytes from `address` on that are in the file. Returns their number.
  [[nodiscard]] std::size_t read(TraceeAddr address, std::span<std::uint8_t> out) const;
  /// Returns the file mapping that contains `address`; null if there is none.
  [[nodiscard]] const CoreMapping* mapping_at(TraceeAddr address) const;
  [[nodiscard]] const CoreSegment* segment_at(TraceeAddr address) const;

  // Backtrail's own notes and segment; empty in other cores.
  [[nodiscard]] const std::vector<TraceIndexEntry>& trace_index() const { return notes_.index; }
  [[nodiscard]] std::span<const std::uint8_t> trace_segment() const { return traces_; }
  /// Facts by name; see docs/core-format.md.
  [[nodiscard]] const std::map<std::string, std::string>& about() const { return notes_.about; }
  /// Returns true if the traces are in a format newer than this reader; they are not read then.
  [[nodiscard]] bool newer_format() const { return notes_.newer_format; }

 private:
  struct Header;
  struct ProgramHeader;
  static Result<Header> parse_header(std::span<const std::uint8_t> file);
  void take_segment(std::span<const std::uint8_t> file, const ProgramHeader& header);

  arch::Isa isa_ = arch::Isa::kAmd64;
  bool truncated_ = false;
  NoteContents notes_;
  std::vector<CoreSegment> segments_;
  std::span<const std::uint8_t> traces_;
};

}  // namespace backtrail::decoder
