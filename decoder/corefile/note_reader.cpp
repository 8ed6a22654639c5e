// SPDX-License-Identifier: Apache-2.0
#include "decoder/corefile/note_reader.hpp"

#include <algorithm>
#include <cstddef>

#include <elf.h>

#include "decoder/corefile/about_text.hpp"
#include "decoder/corefile/bytes.hpp"
#include "decoder/corefile/note_layout.hpp"

namespace backtrail::decoder {
namespace {

std::string until_nul(std::span<const std::uint8_t> bytes) {
  const auto end = std::find(bytes.begin(), bytes.end(), std::uint8_t{0});
  return {bytes.begin(), end};
}

}  // namespace

void NoteReader::read(std::span<const std::uint8_t> notes) {
  ByteReader in{notes};
  constexpr std::uint64_t kUnit = 4;
  const auto padded = [](std::uint64_t size) { return (size + kUnit - 1) / kUnit * kUnit; };
  while (in.rest().size() >= sizeof(Elf64_Nhdr)) {
    const auto name_bytes = in.number<std::uint32_t>();
    const auto desc_bytes = in.number<std::uint32_t>();
    const auto type = in.number<std::uint32_t>();
    const auto name = in.take(padded(name_bytes));
    // The last note may lack its padding.
    const auto desc = in.take(desc_bytes);
    if (!in.good()) return;
    in.skip(std::min<std::uint64_t>(padded(desc_bytes) - desc_bytes, in.rest().size()));
    take_note(until_nul(name), type, desc);
  }
}

void NoteReader::take_note(std::string_view owner, std::uint32_t type,
                           std::span<const std::uint8_t> desc) {
  if (owner == "CORE") {
    take_core_note(type, desc);
  } else if (owner == "LINUX" && type == NT_X86_XSTATE && !out_.threads.empty()) {
    out_.threads.back().xsave.assign(desc.begin(), desc.end());
  } else if (owner == kNoteOwner && type == kIndexNote) {
    take_index(desc);
  } else if (owner == kNoteOwner && type == kAboutNote) {
    out_.about = parse_about(std::string{desc.begin(), desc.end()});
  }
}

void NoteReader::take_core_note(std::uint32_t type, std::span<const std::uint8_t> desc) {
  switch (type) {
    case NT_PRSTATUS:
      take_prstatus(desc);
      break;
    case NT_PRPSINFO:
      take_psinfo(desc);
      break;
    case NT_AUXV:
      out_.auxv.assign(desc.begin(), desc.end());
      break;
    case NT_FILE:
      take_files(desc);
      break;
    case NT_FPREGSET:
      // On i386 this is the old form; the XSAVE note has the FXSAVE image.
      if (isa_ == arch::Isa::kAmd64 && !out_.threads.empty() && out_.threads.back().xsave.empty()) {
        out_.threads.back().xsave.assign(desc.begin(), desc.end());
      }
      break;
    case NT_SIGINFO:
      if (!out_.threads.empty() && desc.size() >= arch::cpu::kSiginfoBytes) {
        arch::cpu::SiginfoBytes bytes{};
        std::copy_n(desc.begin(), bytes.size(), bytes.begin());
        out_.threads.back().siginfo = bytes;
      }
      break;
    default:
      break;
  }
}

void NoteReader::take_prstatus(std::span<const std::uint8_t> desc) {
  const PrstatusLayout& layout = prstatus_layout(isa_);
  if (desc.size() < layout.bytes) return;
  CoreThread thread;
  thread.signal = ByteReader{desc.subspan(kCursigOffset)}.number<std::int16_t>();
  thread.tid = ByteReader{desc.subspan(layout.pid)}.number<std::uint32_t>();
  if (std::any_of(out_.threads.begin(), out_.threads.end(),
                  [&](const CoreThread& other) { return other.tid == thread.tid; })) {
    return;
  }
  ByteReader words{desc.subspan(layout.registers)};
  for (const arch::cpu::UserReg reg : layout.order) {
    thread.user[reg] =
        layout.word_bytes == 8 ? words.number<std::uint64_t>() : words.number<std::uint32_t>();
  }
  out_.threads.push_back(std::move(thread));
}

void NoteReader::take_psinfo(std::span<const std::uint8_t> desc) {
  const PsinfoLayout& layout = psinfo_layout(isa_);
  if (desc.size() < layout.bytes) return;
  out_.process.pid = ByteReader{desc.subspan(layout.pid)}.number<std::uint32_t>();
  out_.process.name = until_nul(desc.subspan(layout.name, kPsinfoNameBytes));
  out_.process.arguments = until_nul(desc.subspan(layout.arguments, kPsinfoArgumentBytes));
}

void NoteReader::take_files(std::span<const std::uint8_t> desc) {
  const bool wide = isa_ == arch::Isa::kAmd64;
  ByteReader in{desc};
  const auto word = [&]() -> std::uint64_t {
    return wide ? in.number<std::uint64_t>() : in.number<std::uint32_t>();
  };
  const std::uint64_t count = word();
  const std::uint64_t unit = word();
  if (count > in.rest().size() / (wide ? 24U : 12U)) return;
  std::vector<CoreMapping> mappings(static_cast<std::size_t>(count));
  for (CoreMapping& mapping : mappings) {
    mapping.start = TraceeAddr{word()};
    mapping.end = TraceeAddr{word()};
    mapping.file_offset = word() * unit;
  }
  for (CoreMapping& mapping : mappings) {
    mapping.path = until_nul(in.rest());
    in.skip(mapping.path.size() + 1);
  }
  out_.mappings = std::move(mappings);
}

void NoteReader::take_index(std::span<const std::uint8_t> desc) {
  ByteReader in{desc};
  if (in.number<std::uint32_t>() != kFormatVersion) {
    out_.newer_format = true;
    return;
  }
  const auto count = in.number<std::uint32_t>();
  in.skip(16);  // Offset and size, which the segment's own header repeats.
  if (count > in.rest().size() / kIndexEntryBytes) return;
  for (std::uint32_t i = 0; i < count; ++i) {
    TraceIndexEntry entry;
    entry.tid = in.number<std::uint32_t>();
    entry.about_lost = in.number<std::uint32_t>();
    entry.records = in.number<std::uint64_t>();
    entry.lost = in.number<std::uint64_t>();
    const auto name = in.take(sizeof entry.name);
    if (!in.good()) return;
    std::copy(name.begin(), name.end(), std::begin(entry.name));
    out_.index.push_back(entry);
  }
}

}  // namespace backtrail::decoder
