// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The notes of a core: threads, process, mappings, and Backtrail's index.

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "arch/base/address.hpp"
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

struct CoreProcess {
  std::uint32_t pid = 0;
  std::string name;
  std::string arguments;  ///< The first 80 bytes of the command line.
};

/// Contents of the notes of a core.
struct NoteContents {
  CoreProcess process;
  std::vector<CoreThread> threads;  ///< The thread that died is first.
  std::vector<std::uint8_t> auxv;
  std::vector<CoreMapping> mappings;
  std::vector<TraceIndexEntry> index;
  std::map<std::string, std::string> about;
  bool newer_format = false;  ///< The index is in a format newer than this reader.
};

/// Reads notes of untrusted files: a note that is cut off, too short or unknown is left out.
class NoteReader {
 public:
  /// Borrows `out`. `isa` is the program's.
  NoteReader(arch::Isa isa, NoteContents& out) : isa_{isa}, out_{out} {}

  /// Adds what a segment of notes says.
  void read(std::span<const std::uint8_t> notes);

 private:
  void take_note(std::string_view owner, std::uint32_t type, std::span<const std::uint8_t> desc);
  void take_core_note(std::uint32_t type, std::span<const std::uint8_t> desc);
  void take_prstatus(std::span<const std::uint8_t> desc);
  void take_psinfo(std::span<const std::uint8_t> desc);
  void take_files(std::span<const std::uint8_t> desc);
  void take_index(std::span<const std::uint8_t> desc);

  arch::Isa isa_;
  NoteContents& out_;
};

}  // namespace backtrail::decoder
