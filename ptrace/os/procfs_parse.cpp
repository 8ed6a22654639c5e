// SPDX-License-Identifier: Apache-2.0
// The parsers of procfs.hpp: pure functions from the text of /proc to values.
#include <array>
#include <charconv>
#include <string_view>

#include <elf.h>

#include "arch/cpu/program_abi.hpp"
#include "ptrace/os/procfs.hpp"

namespace backtrail::tracee {
namespace {

constexpr bool is_blank(char character) {
  return character == ' ' || character == '\t' || character == '\n';
}

// Takes the text up to the next blank and skips the blanks after it. find_first_of() would call
// memchr(3) for each character.
std::string_view take_word(std::string_view& rest) {
  std::size_t end = 0;
  while (end < rest.size() && !is_blank(rest[end])) ++end;
  std::size_t next = end;
  while (next < rest.size() && is_blank(rest[next])) ++next;
  const std::string_view word = rest.substr(0, end);
  rest.remove_prefix(next);
  return word;
}

template <typename Number>
bool to_number(std::string_view text, Number& out, int base = 10) {
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, out, base);
  return result.ec == std::errc{} && result.ptr == end;
}

template <typename Number>
bool take_number(std::string_view& rest, Number& out, int base = 10) {
  return to_number(take_word(rest), out, base);
}

bool skip_words(std::string_view& rest, int count) {
  for (int i = 0; i < count; ++i)
    if (take_word(rest).empty()) return false;
  return true;
}

// Parses "a-b" or "a:b", by the separator, as two hexadecimal numbers.
template <typename Number>
bool to_pair(std::string_view text, char separator, Number& first, Number& second) {
  const std::size_t at = text.find(separator);
  return at != std::string_view::npos && to_number(text.substr(0, at), first, 16) &&
         to_number(text.substr(at + 1), second, 16);
}

bool apply_status_field(std::string_view key, std::string_view value, ProcStatus& out) {
  if (key == "Name") {
    out.name = value;
    return true;
  }
  if (key == "State") {
    out.state = value.empty() ? '?' : value.front();
    return true;
  }
  if (key == "Tgid") return take_number(value, out.tgid);
  if (key == "PPid") return take_number(value, out.ppid);
  if (key == "TracerPid") return take_number(value, out.tracer_pid);
  if (key == "Uid")
    return take_number(value, out.real_uid) && take_number(value, out.effective_uid) &&
           take_number(value, out.saved_uid);
  if (key == "Gid")
    return take_number(value, out.real_gid) && take_number(value, out.effective_gid);
  if (key == "NSpid") {
    out.namespace_depth = 0;
    for (auto word = take_word(value); !word.empty(); word = take_word(value)) {
      ++out.namespace_depth;
      if (!to_number(word, out.own_id)) return false;
    }
    return true;
  }
  if (key == "SigBlk") return take_number(value, out.signals_blocked, 16);
  if (key == "SigIgn") return take_number(value, out.signals_ignored, 16);
  if (key == "SigCgt") return take_number(value, out.signals_caught, 16);
  if (key == "CapEff") return take_number(value, out.effective_capabilities, 16);
  if (key == "NoNewPrivs") {
    out.no_new_privileges = value.starts_with('1');
    return true;
  }
  if (key == "Seccomp") return take_number(value, out.seccomp);
  if (key == "Seccomp_filters") return take_number(value, out.seccomp_filters.emplace());
  return true;
}

// Calls f(line) for every line, without its newline.
template <typename Function>
void for_each_line(std::string_view text, Function f) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    f(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

}  // namespace

std::optional<ProcStat> parse_stat(std::string_view text) {
  // The name is free text between the first '(' and the last ')': it may hold blanks and brackets.
  const std::size_t open = text.find('(');
  const std::size_t close = text.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open)
    return std::nullopt;
  ProcStat out;
  std::string_view before = text.substr(0, open);
  if (!take_number(before, out.pid)) return std::nullopt;
  out.comm = text.substr(open + 1, close - open - 1);
  std::string_view rest = text.substr(close + 1);
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  const std::string_view state = take_word(rest);
  if (state.size() != 1) return std::nullopt;
  out.state = state.front();
  // Numbers as in proc(5): 4 ppid, 5 pgrp, 6 session, 9 flags, 20 num_threads, 22 starttime,
  // 39 processor.
  const bool good =
      take_number(rest, out.ppid) && take_number(rest, out.pgrp) &&
      take_number(rest, out.session) && skip_words(rest, 2) && take_number(rest, out.flags) &&
      skip_words(rest, 10) && take_number(rest, out.threads) && skip_words(rest, 1) &&
      take_number(rest, out.start_time) && skip_words(rest, 16) && take_number(rest, out.processor);
  if (!good) return std::nullopt;
  return out;
}

std::optional<ProcStatus> parse_status(std::string_view text) {
  ProcStatus out;
  bool good = true;
  for_each_line(text, [&](std::string_view line) {
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) return;
    std::string_view value = line.substr(colon + 1);
    value.remove_prefix(std::min(value.find_first_not_of(" \t"), value.size()));
    good = apply_status_field(line.substr(0, colon), value, out) && good;
  });
  if (!good || out.tgid == 0) return std::nullopt;
  return out;
}

std::optional<MapEntry> parse_maps_line(std::string_view line) {
  MapEntry out;
  std::string_view rest = line;
  if (!to_pair(take_word(rest), '-', out.start, out.end) || out.start >= out.end)
    return std::nullopt;
  const std::string_view permissions = take_word(rest);
  if (permissions.size() != 4) return std::nullopt;
  out.read = permissions[0] == 'r';
  out.write = permissions[1] == 'w';
  out.execute = permissions[2] == 'x';
  out.shared = permissions[3] == 's';
  if (!take_number(rest, out.offset, 16)) return std::nullopt;
  if (!to_pair(take_word(rest), ':', out.device_major, out.device_minor)) return std::nullopt;
  if (!take_number(rest, out.inode)) return std::nullopt;
  // The path is the rest of the line, including blanks.
  while (rest.ends_with('\n')) rest.remove_suffix(1);
  out.path = rest;
  // The newline is the only character of a name that the kernel escapes.
  constexpr std::string_view kNewline = "\\012";
  for (std::size_t at = 0; (at = out.path.find(kNewline, at)) != std::string::npos; ++at) {
    out.path.replace(at, kNewline.size(), "\n");
  }
  return out;
}

std::vector<MapEntry> parse_maps(std::string_view text) {
  std::vector<MapEntry> out;
  for_each_line(text, [&](std::string_view line) {
    if (auto entry = parse_maps_line(line)) out.push_back(std::move(*entry));
  });
  return out;
}

std::optional<arch::Isa> elf_isa(std::string_view header) {
  constexpr std::size_t kMachineOffset = 18;  // e_machine, in both classes.
  if (header.size() < kMachineOffset + 2 || !header.starts_with(ELFMAG)) return std::nullopt;
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(header[i]); };
  if (byte(EI_DATA) != ELFDATA2LSB) return std::nullopt;
  const unsigned machine = byte(kMachineOffset) | (unsigned{byte(kMachineOffset + 1)} << 8U);
  // The machine decides, not the class: x32 programs are 32-bit files of 64-bit code.
  if (machine == EM_X86_64) return arch::Isa::kAmd64;
  if (machine == EM_386) return arch::Isa::kI386;
  return std::nullopt;
}

std::optional<arch::Isa> isa_from_code_segment(std::uint64_t cs) {
  if (cs == arch::cpu::kCodeSegment32) return arch::Isa::kI386;
  if (cs == arch::cpu::kCodeSegment64) return arch::Isa::kAmd64;
  return std::nullopt;
}

}  // namespace backtrail::tracee
