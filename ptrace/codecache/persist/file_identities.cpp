// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/persist/file_identities.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <elf.h>
#include <unistd.h>

#include "arch/base/page.hpp"
#include "ptrace/codecache/persist/checksum.hpp"
#include "ptrace/codecache/persist/note_file.hpp"
#include "ptrace/os/file_facts.hpp"

namespace backtrail::tracee::cache {
namespace {

using Part = std::pair<std::uint64_t, std::uint64_t>;  // offset and bytes

constexpr std::uint64_t kMostRead = 64ULL << 20;
constexpr std::size_t kBufferBytes = 64UL << 10;
static_assert(kBufferBytes % Checksum::kAtOnce == 0);
/// The headers and the build-id of usual files lie in their first page.
constexpr std::uint64_t kHeaderBytes = 4096;
constexpr std::size_t kMostSegments = 256;
/// A note has at most this many lines of at most kMostLineBytes.
constexpr std::size_t kMostLines = 150;
constexpr std::size_t kMostLineBytes = 104;
static_assert(kMostLines * kMostLineBytes < kMostNoteBytes);

template <typename T>
bool read_at(int fd, std::uint64_t offset, T* out, std::size_t count = 1) {
  const std::size_t bytes = count * sizeof(T);
  return ::pread(fd, out, bytes, static_cast<off_t>(offset)) == static_cast<ssize_t>(bytes);
}

/// Returns the parts of the file that code depends on.
std::vector<Part> parts_of(int fd, std::uint64_t size) {
  std::vector<Part> whole{{0, size}};
  Elf64_Ehdr header{};
  if (!read_at(fd, 0, &header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_phentsize != sizeof(Elf64_Phdr) ||
      header.e_phnum == 0 || header.e_phnum > kMostSegments) {
    return whole;
  }
  std::vector<Elf64_Phdr> segments(header.e_phnum);
  if (!read_at(fd, header.e_phoff, segments.data(), segments.size())) return whole;
  std::vector<Part> parts{{0, std::min(size, kHeaderBytes)}};
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) continue;
    if (segment.p_offset > size || segment.p_filesz > size - segment.p_offset) return whole;
    parts.emplace_back(segment.p_offset, segment.p_filesz);
  }
  return parts;
}

/// Adds a part of the file to the checksum; returns false if it cannot be read.
bool add(Checksum& sum, int fd, Part part, std::span<std::uint8_t> buffer) {
  while (part.second != 0) {
    const auto bytes =
        static_cast<std::size_t>(std::min<std::uint64_t>(buffer.size(), part.second));
    if (!read_at(fd, part.first, buffer.data(), bytes)) return false;
    // Zeros fill the last piece, so that the next part may follow.
    const std::size_t padded =
        (bytes + Checksum::kAtOnce - 1) / Checksum::kAtOnce * Checksum::kAtOnce;
    std::fill(buffer.begin() + static_cast<std::ptrdiff_t>(bytes),
              buffer.begin() + static_cast<std::ptrdiff_t>(padded), std::uint8_t{0});
    sum.add(buffer.first(padded));
    part.first += bytes;
    part.second -= bytes;
  }
  return true;
}

void add(Checksum& sum, std::initializer_list<std::uint64_t> numbers) {
  std::array<std::uint8_t, Checksum::kAtOnce> block{};
  std::memcpy(block.data(), numbers.begin(), std::min(numbers.size() * 8, block.size()));
  sum.add(block);
}

std::optional<std::uint64_t> read_identity(int fd, const struct stat& facts) {
  const auto size = static_cast<std::uint64_t>(facts.st_size);
  const std::vector<Part> parts = parts_of(fd, size);
  std::uint64_t bytes = 0;
  for (const Part& part : parts) bytes += part.second;
  Checksum sum;
  if (bytes > kMostRead) {
    add(sum, {1, facts.st_dev, facts.st_ino, size, nanoseconds_of(facts.st_mtim),
              nanoseconds_of(facts.st_ctim)});
    return sum.value();
  }
  add(sum, {0, size});
  std::array<std::uint8_t, kBufferBytes> buffer;  // NOLINT: filled before it is used
  for (const Part& part : parts) {
    add(sum, {part.first, part.second});
    if (!add(sum, fd, part, buffer)) return std::nullopt;
  }
  return sum.value();
}

}  // namespace

bool identity_covers(int fd, std::uint64_t size, std::uint64_t offset, std::uint64_t bytes) {
  std::uint64_t summed = 0;
  const std::vector<Part> parts = parts_of(fd, size);
  for (const Part& part : parts) summed += part.second;
  if (bytes == 0 || summed > kMostRead) return true;
  return std::ranges::any_of(parts, [=](const Part& part) {
    const std::uint64_t end = round_up_to_pages(part.first + part.second);
    return page_begin(part.first) <= offset && offset + bytes <= end;
  });
}

void FileIdentities::read() {
  note_read_ = true;
  if (note_.empty()) return;
  std::istringstream note{read_note(note_).value_or("")};
  // Device numbers and times mean nothing to another machine.
  std::string line;
  if (!std::getline(note, line) || line != boot_id()) return;
  FileFacts facts{};
  std::uint64_t identity = 0;
  while (note >> std::hex >> facts[0] >> facts[1] >> facts[2] >> facts[3] >> facts[4] >> identity) {
    known_.emplace(facts, Known{.identity = identity});
  }
}

std::optional<std::uint64_t> FileIdentities::of(int fd, const struct stat& facts,
                                                bool may_read_note) {
  if (!note_read_ && may_read_note) read();
  const FileFacts key = facts_of(facts);
  if (const auto known = known_.find(key); known != known_.end()) {
    known->second.asked = true;
    return known->second.identity;
  }
  const auto identity = read_identity(fd, facts);
  if (identity && is_settled(facts)) {
    known_.emplace(key, Known{.identity = *identity, .asked = true});
    has_news_ = true;
  }
  return identity;
}

void FileIdentities::note_covered(const struct stat& facts, std::uint64_t offset,
                                  std::uint64_t bytes) {
  constexpr std::size_t kMostCovered = 16;
  const auto found = known_.find(facts_of(facts));
  if (found == known_.end() || found->second.covered.size() == kMostCovered) return;
  found->second.covered.emplace_back(offset, bytes);
}

std::optional<std::uint64_t> FileIdentities::known(const struct stat& facts, std::uint64_t offset,
                                                   std::uint64_t bytes) const {
  const auto found = known_.find(facts_of(facts));
  if (found == known_.end() || std::ranges::find(found->second.covered, std::pair{offset, bytes}) ==
                                   found->second.covered.end()) {
    return std::nullopt;
  }
  return found->second.identity;
}

void FileIdentities::save() {
  has_news_ = false;
  if (note_.empty() || boot_id().empty()) return;
  std::ostringstream note;
  note << boot_id() << '\n' << std::hex;
  std::size_t lines = 0;
  // The files of this process come first: the others may be gone.
  for (const bool now : {true, false}) {
    for (const auto& [facts, known] : known_) {
      if (known.asked != now || ++lines > kMostLines) continue;
      for (const std::uint64_t fact : facts) note << fact << ' ';
      note << known.identity << '\n';
    }
  }
  write_note(note_, note.str());
}

}  // namespace backtrail::tracee::cache
