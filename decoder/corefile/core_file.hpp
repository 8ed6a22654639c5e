#pragma once
/// @file
/// An ELF core of Linux on x86, read: whole, cut off, or damaged.
///
/// Entry type: CoreFile. It believes nothing the file says without looking: sizes are held against
/// the bytes that are there, and what cannot be read is absent.

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "arch/base/result.hpp"
#include "arch/isa.hpp"
#include "arch/x86/raw_registers.hpp"
#include "arch/x86/siginfo32.hpp"
#include "decoder/corefile/core_format.hpp"

namespace backtrail::decoder {

struct CoreThread {
  std::uint32_t tid = 0;
  int signal = 0;  ///< pr_cursig.
  arch::x86::UserRegs user;
  std::vector<std::uint8_t> xsave;  ///< NT_X86_XSTATE, or the FXSAVE image; may be empty.
  std::optional<arch::x86::SiginfoBytes> siginfo;  ///< In the program's own width.
};

/// A line of NT_FILE.
struct CoreMapping {
  TraceeAddr start;
  TraceeAddr end;
  std::uint64_t file_offset = 0;
  std::string path;
};

struct CoreSegment {
  TraceeAddr start;
  std::uint64_t memory_bytes = 0;
  std::uint32_t flags = 0;              ///< PF_*.
  std::span<const std::uint8_t> bytes;  ///< The part that is in the file.
};

struct CoreProcess {
  std::uint32_t pid = 0;
  std::string name;
  std::string arguments;  ///< The first 80 bytes of the command line.
};

class CoreFile {
 public:
  /// `file` is borrowed. Error kMalformed: no ELF core of this CPU family (detail = what is wrong
  /// first, an offset), or no thread in it.
  static Result<CoreFile> parse(std::span<const std::uint8_t> file);

  [[nodiscard]] arch::Isa isa() const { return isa_; }
  [[nodiscard]] const CoreProcess& process() const { return process_; }
  /// The one that died first; at least one.
  [[nodiscard]] const std::vector<CoreThread>& threads() const { return threads_; }
  [[nodiscard]] const std::vector<std::uint8_t>& auxv() const { return auxv_; }
  [[nodiscard]] const std::vector<CoreMapping>& mappings() const { return mappings_; }
  /// By address.
  [[nodiscard]] const std::vector<CoreSegment>& segments() const { return segments_; }
  /// Something that the file promises lies behind its end.
  [[nodiscard]] bool truncated() const { return truncated_; }

  /// Bytes that are in the file, from `address` on; returns how many.
  [[nodiscard]] std::size_t read(TraceeAddr address, std::span<std::uint8_t> out) const;
  /// The file mapping that holds `address`.
  [[nodiscard]] const CoreMapping* mapping_at(TraceeAddr address) const;
  [[nodiscard]] const CoreSegment* segment_at(TraceeAddr address) const;

  // What Backtrail added; empty in cores of others.
  [[nodiscard]] const std::vector<TraceIndexEntry>& trace_index() const { return index_; }
  [[nodiscard]] std::span<const std::uint8_t> trace_segment() const { return traces_; }
  /// Facts by name; see docs/core-format.md.
  [[nodiscard]] const std::map<std::string, std::string>& about() const { return about_; }
  /// A format that is newer than this reader; traces are not read then.
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

/// "name=value" lines; bytes below blank, '%' and DEL stand as %XX.
[[nodiscard]] std::string about_text(const std::map<std::string, std::string>& facts);
[[nodiscard]] std::map<std::string, std::string> parse_about(std::string_view text);

}  // namespace backtrail::decoder
