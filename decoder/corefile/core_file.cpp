// SPDX-License-Identifier: Apache-2.0
#include "decoder/corefile/core_file.hpp"

#include <algorithm>

#include <elf.h>

#include "arch/base/bytes.hpp"
#include "decoder/corefile/bytes.hpp"

namespace backtrail::decoder {
namespace {

constexpr std::size_t kHeader32Bytes = sizeof(Elf32_Ehdr);
constexpr std::size_t kHeader64Bytes = sizeof(Elf64_Ehdr);

Error malformed(const char* what, std::uint64_t where) {
  return make_error(TraceErrc::kMalformed, what, where);
}

/// Returns the part of [offset, offset + size) that lies in `file`.
std::span<const std::uint8_t> part(std::span<const std::uint8_t> file, std::uint64_t offset,
                                   std::uint64_t size) {
  if (offset >= file.size()) return {};
  return file.subspan(static_cast<std::size_t>(offset),
                      static_cast<std::size_t>(std::min(size, file.size() - offset)));
}

}  // namespace

struct CoreFile::Header {
  bool wide = true;
  std::uint64_t table = 0;
  std::uint64_t entries = 0;
  std::uint64_t entry_bytes = 0;
};

struct CoreFile::ProgramHeader {
  std::uint32_t type = 0;
  std::uint32_t flags = 0;
  std::uint64_t offset = 0;
  std::uint64_t address = 0;
  std::uint64_t file_bytes = 0;
  std::uint64_t memory_bytes = 0;

  static ProgramHeader read(std::span<const std::uint8_t> bytes, bool wide);
};

CoreFile::ProgramHeader CoreFile::ProgramHeader::read(std::span<const std::uint8_t> bytes,
                                                      bool wide) {
  ProgramHeader out;
  ByteReader in{bytes};
  out.type = in.number<std::uint32_t>();
  if (wide) {
    out.flags = in.number<std::uint32_t>();
    out.offset = in.number<std::uint64_t>();
    out.address = in.number<std::uint64_t>();
    in.skip(8);
    out.file_bytes = in.number<std::uint64_t>();
    out.memory_bytes = in.number<std::uint64_t>();
  } else {
    out.offset = in.number<std::uint32_t>();
    out.address = in.number<std::uint32_t>();
    in.skip(4);
    out.file_bytes = in.number<std::uint32_t>();
    out.memory_bytes = in.number<std::uint32_t>();
    out.flags = in.number<std::uint32_t>();
  }
  return out;
}

Result<CoreFile::Header> CoreFile::parse_header(std::span<const std::uint8_t> file) {
  if (file.size() < kHeader32Bytes ||
      !std::equal(file.begin(), file.begin() + SELFMAG, std::string_view{ELFMAG}.begin(),
                  [](std::uint8_t a, char b) { return a == static_cast<std::uint8_t>(b); }) ||
      file[EI_DATA] != ELFDATA2LSB) {
    return fail(malformed("not an ELF file, nor a packed one", 0));
  }
  Header out;
  out.wide = file[EI_CLASS] == ELFCLASS64;
  if (file.size() < (out.wide ? kHeader64Bytes : kHeader32Bytes)) {
    return fail(malformed("read an ELF header", file.size()));
  }
  ByteReader in{file.subspan(EI_NIDENT)};
  const auto type = in.number<std::uint16_t>();
  const auto machine = in.number<std::uint16_t>();
  if (type != ET_CORE) return fail(malformed("not a core file: e_type", EI_NIDENT));
  if (machine != (out.wide ? EM_X86_64 : EM_386)) {
    return fail(malformed("core of another CPU: e_machine", EI_NIDENT + 2));
  }
  in.skip(4);  // e_version
  const std::size_t word = out.wide ? 8 : 4;
  in.skip(word);  // e_entry
  out.table = out.wide ? in.number<std::uint64_t>() : in.number<std::uint32_t>();
  const std::uint64_t sections = out.wide ? in.number<std::uint64_t>() : in.number<std::uint32_t>();
  in.skip(4 + 2);  // e_flags, e_ehsize
  out.entry_bytes = in.number<std::uint16_t>();
  out.entries = in.number<std::uint16_t>();
  if (out.entry_bytes != (out.wide ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr))) {
    return fail(malformed("read program headers: e_phentsize", EI_NIDENT));
  }
  if (out.entries == PN_XNUM) {
    const std::size_t info =
        out.wide ? offsetof(Elf64_Shdr, sh_info) : offsetof(Elf32_Shdr, sh_info);
    ByteReader count{part(file, sections, out.wide ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr))};
    count.skip(info);
    out.entries = count.number<std::uint32_t>();
  }
  return out;
}

Result<CoreFile> CoreFile::parse(std::span<const std::uint8_t> file) {
  BT_TRY(const Header header, parse_header(file));
  CoreFile core;
  core.isa_ = header.wide ? arch::Isa::kAmd64 : arch::Isa::kI386;
  const std::uint64_t room =
      header.table >= file.size() ? 0 : (file.size() - header.table) / header.entry_bytes;
  core.truncated_ = room < header.entries;
  const std::uint64_t count = std::min(room, header.entries);
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto bytes = part(file, header.table + i * header.entry_bytes, header.entry_bytes);
    core.take_segment(file, ProgramHeader::read(bytes, header.wide));
  }
  std::stable_sort(core.segments_.begin(), core.segments_.end(),
                   [](const CoreSegment& a, const CoreSegment& b) { return a.start < b.start; });
  if (core.notes_.threads.empty())
    return fail(malformed("look for a thread in the core", header.table));
  return core;
}

void CoreFile::take_segment(std::span<const std::uint8_t> file, const ProgramHeader& header) {
  const auto bytes = part(file, header.offset, header.file_bytes);
  if (bytes.size() < header.file_bytes) truncated_ = true;
  switch (header.type) {
    case PT_NOTE:
      NoteReader{isa_, notes_}.read(bytes);
      break;
    case PT_LOAD:
      // A segment that wraps around would claim addresses that it does not hold.
      if (header.memory_bytes > ~header.address) break;
      segments_.push_back({.start = TraceeAddr{header.address},
                           .memory_bytes = header.memory_bytes,
                           .flags = header.flags,
                           .bytes = bytes.first(static_cast<std::size_t>(
                               std::min<std::uint64_t>(bytes.size(), header.memory_bytes)))});
      break;
    case kTraceSegment:
      traces_ = bytes;
      break;
    default:
      break;
  }
}

namespace {

/// Returns the last segment that begins at or below `address`; null if there is none.
const CoreSegment* last_at_or_below(const std::vector<CoreSegment>& segments, TraceeAddr address) {
  const auto next = std::upper_bound(
      segments.begin(), segments.end(), address,
      [](TraceeAddr at, const CoreSegment& segment) { return at < segment.start; });
  return next == segments.begin() ? nullptr : &*std::prev(next);
}

}  // namespace

const CoreSegment* CoreFile::segment_at(TraceeAddr address) const {
  const CoreSegment* segment = last_at_or_below(segments_, address);
  return segment != nullptr && address - segment->start < segment->memory_bytes ? segment : nullptr;
}

std::size_t CoreFile::read(TraceeAddr address, std::span<std::uint8_t> out) const {
  std::size_t done = 0;
  while (done < out.size()) {
    const CoreSegment* segment = last_at_or_below(segments_, address + done);
    if (segment == nullptr) break;
    const std::uint64_t skip = (address + done) - segment->start;
    if (skip >= segment->bytes.size()) break;
    const auto bytes = segment->bytes.subspan(static_cast<std::size_t>(skip));
    const std::size_t count = std::min(bytes.size(), out.size() - done);
    std::copy_n(bytes.begin(), count, out.begin() + static_cast<std::ptrdiff_t>(done));
    done += count;
  }
  return done;
}

const CoreMapping* CoreFile::mapping_at(TraceeAddr address) const {
  const auto found = std::find_if(notes_.mappings.begin(), notes_.mappings.end(),
                                  [address](const CoreMapping& mapping) {
                                    return mapping.start <= address && address < mapping.end;
                                  });
  return found == notes_.mappings.end() ? nullptr : &*found;
}

std::uint64_t CoreFile::auxv_value(std::uint64_t wanted) const {
  const std::size_t width = isa() == arch::Isa::kAmd64 ? 8 : 4;
  const std::span<const std::uint8_t> entries = notes_.auxv;
  const auto word = [&](std::size_t at) {
    return width == 8 ? load_le<std::uint64_t>(entries, at) : load_le<std::uint32_t>(entries, at);
  };
  for (std::size_t at = 0; at + 2 * width <= entries.size(); at += 2 * width) {
    if (word(at) == wanted) return word(at + width);
  }
  return 0;
}

}  // namespace backtrail::decoder
