// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Reads an ELF core of Linux on x86: whole, cut off, or damaged.
///
/// Entry type: CoreFile. It trusts nothing in the file: sizes are checked against the bytes
/// present, and unreadable parts are left out.

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "arch/base/result.hpp"
#include "arch/cpu/compat_siginfo.hpp"
#include "arch/cpu/registers.hpp"
#include "arch/isa.hpp"
#include "decoder/corefile/core_format.hpp"

namespace backtrail::decoder {

struct CoreThread {
  std::uint32_t tid = 0;
  int signal = 0;  ///< The fatal or current signal, pr_cursig.
  arch::cpu::UserRegs user;
  std::vector<std::uint8_t> xsave;  ///< NT_X86_XSTATE or the FXSAVE image; may be empty.
  std::optional<arch::cpu::SiginfoBytes> siginfo;  ///< In the layout of the program's width.
};

/// An entry of NT_FILE.
struct CoreMapping {
  TraceeAddr start;
  TraceeAddr end;
  std::uint64_t file_offset = 0;
  std::string path;
};

struct CoreSegment {
  TraceeAddr start;
  std::uint64_t memory_bytes = 0;
  std::uint32_t flags = 0;              ///< PF_* bits.
  std::span<const std::uint8_t> bytes;  ///< The part present in the file.
};

struct CoreProcess {
  std::uint32_t pid = 0;
  std::string name;
  std::string arguments;  ///< The first 80 bytes of the command line.
};

class CoreFile {
 public:
  /// Parses a core; borrows `file`. Error kMalformed: not an ELF core of this CPU family (detail is
  /// the first problem and its offset), or a core without threads.
  static Result<CoreFile> parse(std::span<const std::uint8_t> file);

  [[nodiscard]] arch::Isa isa() const { return isa_; }
  [[nodiscard]] const CoreProcess& process() const { return process_; }
  /// Returns the threads, at least one. The thread that died is first.
  [[nodiscard]] const std::vector<CoreThread>& threads() const { return threads_; }
  [[nodiscard]] const std::vector<std::uint8_t>& auxv() const { return auxv_; }
  /// Returns the value of an entry of the auxiliary vector (AT_ENTRY and others); 0 if there is
  /// none.
  [[nodiscard]] std::uint64_t auxv_value(std::uint64_t wanted) const;
  [[nodiscard]] const std::vector<CoreMapping>& mappings() const { return mappings_; }
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
  [[nodiscard]] const std::vector<TraceIndexEntry>& trace_index() const { return index_; }
  [[nodiscard]] std::span<const std::uint8_t> trace_segment() const { return traces_; }
  /// Facts by name; see docs/core-format.md.
  [[nodiscard]] const std::map<std::string, std::string>& about() const { return about_; }
  /// Returns true if the traces are in a format newer than this reader; they are not read then.
  [[nodiscard]] bool newer_format() const { return newer_format_; }

 private:
  struct Header;
  struct ProgramHeader;
  static Result<Header> parse_header(std::span<const std::uint8_t> file);
  void take_segment(std::span<const std::uint8_t> file, const ProgramHeader& header);
  void take_notes(std::span<const std::uint8_t> notes);
  void take_note(std::string_view owner, std::uint32_t type, std::span<const std::uint8_t> desc);
  void take_core_note(std::uint32_t type, std::span<const std::uint8_t> desc);
  void take_prstatus(std::span<const std::uint8_t> desc);
  void take_psinfo(std::span<const std::uint8_t> desc);
  void take_files(std::span<const std::uint8_t> desc);
  void take_index(std::span<const std::uint8_t> desc);

  arch::Isa isa_ = arch::Isa::kAmd64;
  bool truncated_ = false;
  bool newer_format_ = false;
  CoreProcess process_;
  std::vector<CoreThread> threads_;
  std::vector<std::uint8_t> auxv_;
  std::vector<CoreMapping> mappings_;
  std::vector<CoreSegment> segments_;
  std::vector<TraceIndexEntry> index_;
  std::span<const std::uint8_t> traces_;
  std::map<std::string, std::string> about_;
};

/// Formats facts as "name=value" lines. Control characters, '%' and DEL are escaped as %XX.
[[nodiscard]] std::string about_text(const std::map<std::string, std::string>& facts);
[[nodiscard]] std::map<std::string, std::string> parse_about(std::string_view text);

}  // namespace backtrail::decoder
