// SPDX-License-Identifier: Apache-2.0
#include "ptrace/core/core_notes.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include <elf.h>

#include "arch/base/page.hpp"
#include "arch/cpu/compat_siginfo.hpp"
#include "arch/x86/xsave_area.hpp"
#include "arch/x86/xsave_convert.hpp"
#include "decoder/corefile/about_text.hpp"
#include "decoder/corefile/bytes.hpp"
#include "decoder/corefile/core_format.hpp"
#include "decoder/corefile/note_layout.hpp"

namespace backtrail::tracee {
namespace {

using arch::Isa;
using arch::cpu::X87Control;
using decoder::ByteWriter;

constexpr std::size_t kFxRegisterBytes = 16;
constexpr std::size_t kFxRegisterOffset = 32;
constexpr std::size_t kX87RegisterBytes = 10;
constexpr std::size_t kX87Registers = 8;

void put_note(ByteWriter& out, std::string_view owner, std::uint32_t type,
              std::span<const std::uint8_t> desc) {
  constexpr std::size_t kUnit = 4;
  out.number(static_cast<std::uint32_t>(owner.size() + 1));
  out.number(static_cast<std::uint32_t>(desc.size()));
  out.number(type);
  out.text(owner);
  out.zeros(1);
  out.align(kUnit);
  out.put(desc);
  out.align(kUnit);
}

template <typename Number>
void set(std::span<std::uint8_t> bytes, std::size_t offset, Number value) {
  std::memcpy(bytes.data() + offset, &value, sizeof value);
}

/// Writes pid, ppid, pgrp and sid, in the order both kinds of note use.
void set_ids(std::span<std::uint8_t> bytes, std::size_t offset, pid_t id, const ProcStat& stat) {
  for (const pid_t value : {id, stat.ppid, stat.pgrp, stat.session}) {
    set(bytes, offset, value);
    offset += sizeof value;
  }
}

std::vector<std::uint8_t> prstatus(const CoreNotes& notes, const CoreThreadState& thread) {
  const decoder::PrstatusLayout& layout = decoder::prstatus_layout(notes.isa);
  std::vector<std::uint8_t> bytes(layout.bytes);
  set(bytes, 0, std::int32_t{notes.signal});
  // Set for every thread, because gdb takes the last one's.
  set(bytes, decoder::kCursigOffset, static_cast<std::int16_t>(notes.signal));
  set_ids(bytes, layout.pid, thread.tid, notes.stat);
  std::size_t at = layout.registers;
  for (const arch::cpu::UserReg reg : layout.order) {
    const std::uint64_t value = thread.registers.user[reg];
    if (layout.word_bytes == sizeof value) {
      set(bytes, layout.held_signals, thread.blocked_signals);
      set(bytes, at, value);
    } else {
      set(bytes, layout.held_signals, static_cast<std::uint32_t>(thread.blocked_signals));
      set(bytes, at, static_cast<std::uint32_t>(value));
    }
    at += layout.word_bytes;
  }
  set(bytes, layout.has_fp, std::int32_t{1});
  return bytes;
}

std::vector<std::uint8_t> psinfo(const CoreNotes& notes) {
  const decoder::PsinfoLayout& layout = decoder::psinfo_layout(notes.isa);
  constexpr std::string_view kStates = "RSDTZW";
  std::vector<std::uint8_t> bytes(layout.bytes);
  const std::size_t state = kStates.find(notes.stat.state);
  bytes[0] = static_cast<std::uint8_t>(state == std::string_view::npos ? 0 : state);
  bytes[1] = static_cast<std::uint8_t>(kStates[bytes[0]]);
  bytes[2] = notes.stat.zombie() ? 1 : 0;
  if (layout.id_bytes == sizeof(uid_t)) {
    set(bytes, layout.uid, notes.status.real_uid);
    set(bytes, layout.uid + layout.id_bytes, notes.status.real_gid);
  } else {
    set(bytes, layout.uid, static_cast<std::uint16_t>(notes.status.real_uid));
    set(bytes, layout.uid + layout.id_bytes, static_cast<std::uint16_t>(notes.status.real_gid));
  }
  set_ids(bytes, layout.pid, notes.stat.pid, notes.stat);
  const auto field = [&](std::size_t offset, std::size_t size, std::string_view text) {
    std::copy_n(text.begin(), std::min(text.size(), size - 1),
                bytes.begin() + static_cast<std::ptrdiff_t>(offset));
  };
  field(layout.name, decoder::kPsinfoNameBytes, notes.stat.comm);
  field(layout.arguments, decoder::kPsinfoArgumentBytes, notes.arguments);
  return bytes;
}

std::vector<std::uint8_t> file_note(Isa isa, std::span<const MapEntry> files) {
  ByteWriter out;
  const auto word = [&](std::uint64_t value) {
    if (isa == Isa::kAmd64) {
      out.number(value);
    } else {
      out.number(static_cast<std::uint32_t>(value));
    }
  };
  word(files.size());
  word(kPageBytes);
  for (const MapEntry& file : files) {
    word(file.start);
    word(file.end);
    word(file.offset / kPageBytes);
  }
  for (const MapEntry& file : files) {
    out.text(file.path);
    out.zeros(1);
  }
  return {out.bytes().begin(), out.bytes().end()};
}

/// Converts an FXSAVE image to the layout of FSAVE.
std::vector<std::uint8_t> i387_note(std::span<const std::uint8_t> image) {
  const arch::x86::XsaveLayout layout;
  const arch::x86::XsaveReader reader{layout, image.first(arch::x86::kFxsaveBytes)};
  ByteWriter out;
  for (const X87Control control : {X87Control::kFctrl, X87Control::kFstat, X87Control::kFtag}) {
    out.number(reader.x87(control, Isa::kI386) | 0xffff0000U);
  }
  for (const X87Control control :
       {X87Control::kFioff, X87Control::kFiseg, X87Control::kFooff, X87Control::kFoseg}) {
    out.number(reader.x87(control, Isa::kI386));
  }
  for (std::size_t i = 0; i < kX87Registers; ++i) {
    out.put(image.subspan(kFxRegisterOffset + i * kFxRegisterBytes, kX87RegisterBytes));
  }
  return {out.bytes().begin(), out.bytes().end()};
}

void put_vector_state(ByteWriter& out, Isa isa, std::span<const std::uint8_t> area) {
  constexpr std::uint32_t kPrxfpreg = 0x46e62b7f;
  if (area.size() < arch::x86::kFxsaveBytes) return;
  const auto image = area.first(arch::x86::kFxsaveBytes);
  if (isa == Isa::kAmd64) {
    put_note(out, "CORE", NT_FPREGSET, image);
  } else {
    put_note(out, "CORE", NT_FPREGSET, i387_note(image));
    put_note(out, "LINUX", kPrxfpreg, image);
  }
  if (area.size() == arch::x86::kFxsaveBytes) return;
  static const arch::x86::XsaveLayout host = arch::x86::host_xsave_layout();
  put_note(out, "LINUX", NT_X86_XSTATE, arch::x86::to_intel_layout(host, area));
}

void put_siginfo(ByteWriter& out, Isa isa, const std::optional<siginfo_t>& info) {
  if (!info) return;
  auto bytes = std::bit_cast<arch::cpu::SiginfoBytes>(*info);
  if (isa == Isa::kI386) bytes = arch::cpu::siginfo_to_i386(bytes);
  put_note(out, "CORE", NT_SIGINFO, bytes);
}

std::vector<std::uint8_t> index_note(std::span<const decoder::TraceIndexEntry> traces,
                                     std::uint64_t offset, std::uint64_t size) {
  ByteWriter out;
  out.number(decoder::kFormatVersion);
  out.number(static_cast<std::uint32_t>(traces.size()));
  out.number(offset);
  out.number(size);
  for (const decoder::TraceIndexEntry& trace : traces) {
    out.number(trace.tid);
    out.number(trace.about_lost);
    out.number(trace.records);
    out.number(trace.lost);
    out.put({reinterpret_cast<const std::uint8_t*>(trace.name), sizeof trace.name});
  }
  return {out.bytes().begin(), out.bytes().end()};
}

}  // namespace

std::vector<std::uint8_t> CoreNotes::build() const {
  // More bytes than the notes of a thread usually take.
  constexpr std::size_t kEach = 4096;
  ByteWriter out;
  out.buffer().reserve(threads.size() * kEach);
  for (const CoreThreadState& thread : threads) {
    const bool first = &thread == &threads.front();
    put_note(out, "CORE", NT_PRSTATUS, prstatus(*this, thread));
    if (first) put_note(out, "CORE", NT_PRPSINFO, psinfo(*this));
    put_siginfo(out, isa, thread.siginfo);
    if (first) {
      put_note(out, "CORE", NT_AUXV, auxv);
      put_note(out, "CORE", NT_FILE, file_note(isa, files));
    }
    put_vector_state(out, isa, thread.registers.xsave);
  }
  const std::string text = decoder::about_text(about);
  put_note(out, decoder::kNoteOwner, decoder::kAboutNote,
           {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
  return std::move(out.buffer());
}

std::vector<std::uint8_t> CoreNotes::build_index(std::span<const decoder::TraceIndexEntry> traces,
                                                 std::uint64_t trace_offset,
                                                 std::uint64_t trace_bytes) {
  ByteWriter out;
  put_note(out, decoder::kNoteOwner, decoder::kIndexNote,
           index_note(traces, trace_offset, trace_bytes));
  return std::move(out.buffer());
}

}  // namespace backtrail::tracee
