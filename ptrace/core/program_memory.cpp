// SPDX-License-Identifier: Apache-2.0
#include "ptrace/core/program_memory.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include <elf.h>

#include "arch/base/page.hpp"

namespace backtrail::tracee {
namespace {

struct LoadSegment {
  std::uint64_t address = 0;
  std::uint64_t memory_bytes = 0;
  std::uint32_t flags = 0;
};

template <typename Header, typename Program>
std::vector<LoadSegment> load_segments_as(std::span<const std::uint8_t> file) {
  std::vector<LoadSegment> out;
  Header header;
  if (file.size() < sizeof(header)) return out;
  std::memcpy(&header, file.data(), sizeof(header));
  for (std::size_t i = 0; i < header.e_phnum; ++i) {
    Program program;
    const std::uint64_t at = header.e_phoff + i * sizeof(program);
    if (at > file.size() || file.size() - at < sizeof(program)) break;
    std::memcpy(&program, file.data() + at, sizeof(program));
    if (program.p_type != PT_LOAD) continue;
    out.push_back({program.p_vaddr, program.p_memsz, program.p_flags});
  }
  return out;
}

std::vector<LoadSegment> load_segments(std::span<const std::uint8_t> file) {
  const bool narrow = file.size() > EI_CLASS && file[EI_CLASS] == ELFCLASS32;
  return narrow ? load_segments_as<Elf32_Ehdr, Elf32_Phdr>(file)
                : load_segments_as<Elf64_Ehdr, Elf64_Phdr>(file);
}

}  // namespace

TraceeAddr CoreImage::vdso() const {
  return TraceeAddr{core_.auxv_value(AT_SYSINFO_EHDR)};
}

ProgramMemory::ProgramMemory(const decoder::CoreFile& core, std::vector<std::string> roots)
    : ProgramMemory{std::make_unique<CoreImage>(core), std::move(roots)} {}

ProgramMemory::ProgramMemory(std::unique_ptr<const ProgramImage> image,
                             std::vector<std::string> roots)
    : image_{std::move(image)}, roots_{std::move(roots)} {
  roots_.emplace_back();
}

ProgramMemory::~ProgramMemory() = default;

std::size_t ProgramMemory::read(TraceeAddr address, std::span<std::uint8_t> out) {
  std::size_t done = 0;
  while (done < out.size()) {
    std::size_t got = image_->read(address + done, out.subspan(done));
    if (got == 0) got = read_file(address + done, out.subspan(done));
    if (got == 0) break;
    done += got;
  }
  return done;
}

std::size_t ProgramMemory::read_constant(TraceeAddr address, std::span<std::uint8_t> out) {
  std::size_t done = 0;
  while (done < out.size()) {
    const TraceeAddr at = address + done;
    const decoder::CoreSegment* segment = image_->segment_at(at);
    if (segment == nullptr || (segment->flags & PF_W) != 0) break;
    const std::uint64_t left = segment->memory_bytes - (at - segment->start);
    const std::size_t got = read_constant(
        *segment, at, out.subspan(done, std::min<std::uint64_t>(out.size() - done, left)));
    if (got == 0) break;
    done += got;
  }
  return done;
}

/// Reads constant bytes. `wanted` lies in `segment`, which the program may not write.
std::size_t ProgramMemory::read_constant(const decoder::CoreSegment& segment, TraceeAddr at,
                                         std::span<std::uint8_t> wanted) {
  const std::size_t in_core = image_->read(at, wanted);
  const bool code = (segment.flags & PF_X) != 0;
  const decoder::CoreMapping* mapping = image_->mapping_at(at);
  // Code without a file is the kernel's, or was written before it was made executable.
  if (mapping == nullptr) return code && segment.start == image_->vdso() ? in_core : 0;
  if (!is_elf(mapping->path)) return 0;
  // If the core has no copy, memory equals the file only if nothing was written there.
  if (in_core == 0) {
    const std::uint64_t constant = never_writable(*mapping, at);
    return read_file(at, wanted.first(std::min<std::uint64_t>(wanted.size(), constant)));
  }
  std::vector<std::uint8_t> kept(wanted.begin(),
                                 wanted.begin() + static_cast<std::ptrdiff_t>(in_core));
  const std::size_t in_file = read_file(at, wanted);
  if (in_file == 0) {
    std::ranges::copy(kept, wanted.begin());
    return code ? in_core : 0;
  }
  kept.resize(std::min(in_core, in_file));
  // Bytes that the program wrote before it gave up the permission (RELRO) differ from the file.
  const auto differs = std::ranges::mismatch(kept, wanted.first(kept.size())).in1;
  return static_cast<std::size_t>(differs - kept.begin());
}

bool ProgramMemory::has_elf_header(TraceeAddr start) {
  std::array<std::uint8_t, SELFMAG> magic{};
  return read(start, magic) == magic.size() && std::memcmp(magic.data(), ELFMAG, SELFMAG) == 0;
}

bool ProgramMemory::is_elf(const std::string& path) {
  const auto [place, is_new] = elf_.try_emplace(path, false);
  if (!is_new) return place->second;
  bool has_header = false;
  for (const decoder::CoreMapping& mapping : image_->mappings()) {
    if (mapping.path != path || mapping.file_offset != 0) continue;
    const decoder::CoreSegment* segment = image_->segment_at(mapping.start);
    // A process that makes a library maps it shared and writes its header.
    if (segment == nullptr || (segment->flags & PF_W) != 0) return false;
    has_header = has_header || has_elf_header(mapping.start);
  }
  place->second = has_header;
  return has_header;
}

/// Returns how many bytes from `at` on the file's headers never allow to be written (RELRO removes
/// the permission later). 0 if unknown.
std::uint64_t ProgramMemory::never_writable(const decoder::CoreMapping& mapping, TraceeAddr at) {
  const File& found = file(mapping.path);
  if (!found.file) return 0;
  // A page of the file may be mapped twice: as read-only data, and as data that is writable at
  // first.
  const auto& mappings = image_->mappings();
  auto first = std::ranges::find(mappings, mapping.start, &decoder::CoreMapping::start);
  while (first->file_offset != 0) {
    if (first == mappings.begin() || (--first)->path != mapping.path) return 0;
  }
  const auto segments = load_segments(found.file->bytes());
  if (segments.empty()) return 0;
  const std::uint64_t address = at - first->start + page_begin(segments.front().address);
  std::uint64_t count = std::numeric_limits<std::uint64_t>::max();
  for (const LoadSegment& load : segments) {
    if ((load.flags & PF_W) == 0 || address >= load.address + load.memory_bytes) continue;
    const std::uint64_t begin = page_begin(load.address);
    count = std::min(count, begin > address ? begin - address : 0);
  }
  return count;
}

std::size_t ProgramMemory::read_file(TraceeAddr address, std::span<std::uint8_t> out) {
  const decoder::CoreMapping* mapping = image_->mapping_at(address);
  if (mapping == nullptr) return 0;
  const File& found = file(mapping->path);
  if (!found.file) return 0;
  const auto bytes = found.file->bytes();
  const std::uint64_t offset = mapping->file_offset + (address - mapping->start);
  if (offset >= bytes.size()) return 0;
  const std::uint64_t most =
      std::min<std::uint64_t>({out.size(), bytes.size() - offset, mapping->end - address});
  std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(offset), most, out.begin());
  return static_cast<std::size_t>(most);
}

std::optional<std::string> ProgramMemory::find_file(const std::string& path) {
  const File& found = file(path);
  if (!found.file) return std::nullopt;
  return found.path;
}

ProgramMemory::File& ProgramMemory::file(const std::string& path) {
  const auto [place, is_new] = files_.try_emplace(path);
  File& found = place->second;
  if (!is_new) return found;
  bool other = false;
  for (const std::string& root : roots_) {
    auto opened = MappedFile::open(root + path);
    if (!opened) continue;
    if (!is_the_mapped_one(path, *opened)) {
      other = true;
      continue;
    }
    found.path = root + path;
    found.file.emplace(std::move(*opened));
    return found;
  }
  problems_.push_back(path + (other ? " is not the file that the program ran with"
                                    : " is not there; code and data in it cannot be read"));
  return found;
}

bool ProgramMemory::is_the_mapped_one(const std::string& path, const MappedFile& file) const {
  for (const decoder::CoreMapping& mapping : image_->mappings()) {
    if (mapping.path != path || mapping.file_offset != 0) continue;
    std::array<std::uint8_t, kPageBytes> page{};
    const std::size_t got = image_->read(mapping.start, page);
    const auto bytes = file.bytes();
    const std::size_t count = std::min(got, bytes.size());
    return (got == 0 || count != 0) &&
           std::equal(page.begin(), page.begin() + count, bytes.begin());
  }
  return true;
}

}  // namespace backtrail::tracee
