// SPDX-License-Identifier: Apache-2.0
#include "ptrace/core/memory_plan.hpp"

#include <algorithm>
#include <charconv>
#include <string>
#include <utility>

#include <sys/stat.h>

#include "arch/base/page.hpp"
#include "ptrace/os/process_files.hpp"

namespace backtrail::tracee {
namespace {

/// Mappings of files that are gone are read up to this size, at the price of allocating holes.
constexpr std::uint64_t kLittle = 256ULL << 10U;
/// Limits the segments of a mapping: gdb needs about 40 us for each.
constexpr std::size_t kMostGaps = 1U << 18U;
constexpr std::string_view kDeleted = " (deleted)";

bool takes_kilobytes(std::string_view line, std::string_view key, std::uint64_t& out) {
  if (!line.starts_with(key)) return false;
  line.remove_prefix(key.size());
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  std::uint64_t value = 0;
  std::from_chars(line.data(), line.data() + line.size(), value);
  out = value * 1024;
  return true;
}

bool has_flag(std::string_view flags, std::string_view flag) {
  for (std::size_t at = flags.find(flag); at != std::string_view::npos;
       at = flags.find(flag, at + 1)) {
    if (flags[at - 1] == ' ') return true;
  }
  return false;
}

void take_detail(std::string_view line, MemoryMapping& mapping) {
  if (takes_kilobytes(line, "Rss:", mapping.resident_bytes)) return;
  if (takes_kilobytes(line, "Swap:", mapping.swapped_bytes)) return;
  if (takes_kilobytes(line, "Anonymous:", mapping.anonymous_bytes)) return;
  if (line.starts_with("VmFlags:")) {
    mapping.dont_dump = has_flag(line, "dd") || has_flag(line, "io");
  }
}

/// Returns true if debuggers will not find this file later.
bool file_is_gone(const MemoryMapping& mapping) {
  const MapEntry& map = mapping.map;
  return mapping.out_of_reach || map.path.ends_with(kDeleted) || map.path.starts_with("/memfd:") ||
         map.path.starts_with("/SYSV");
}

/// Returns true if the core needs the first page to tell the file from another one of its name.
bool is_identified_by_first_page(const MapEntry& map) {
  return !map.shared && map.offset == 0 && map.read;
}

MappingPart part_of_file(const MemoryMapping& mapping, bool full) {
  const MapEntry& map = mapping.map;
  if (map.path.starts_with("/dev/") && !map.path.starts_with("/dev/shm/") &&
      !map.path.starts_with("/dev/zero")) {
    return MappingPart::kNone;
  }
  const bool gone = file_is_gone(mapping);
  if (map.shared) {
    if (!gone && !full) return MappingPart::kNone;
    // Reading a hole of a shared mapping allocates it.
    return gone && map.end - map.start <= kLittle ? MappingPart::kWhole : MappingPart::kInMemory;
  }
  if (full || mapping.anonymous_bytes + mapping.swapped_bytes != 0) return MappingPart::kWhole;
  if (gone && map.execute) return MappingPart::kWhole;
  // ThreadSanitizer covers all read-only memory with mappings of a file that is gone: a thousand,
  // half a megabyte each.
  if (gone && mapping.resident_bytes != 0) {
    return map.end - map.start <= kLittle ? MappingPart::kWhole : MappingPart::kInMemory;
  }
  return is_identified_by_first_page(map) ? MappingPart::kFirstPage : MappingPart::kNone;
}

/// Returns true if the server finds no file at this path, or finds another file.
bool is_out_of_reach(const MapEntry& map) {
  struct stat facts {};
  return map.inode != 0 && map.path.starts_with('/') &&
         (::stat(map.path.c_str(), &facts) != 0 || facts.st_ino != map.inode);
}

}  // namespace

std::vector<MemoryMapping> parse_smaps(std::string_view text) {
  std::vector<MemoryMapping> out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    // Lines of details begin with a capital letter, lines of mappings with an address.
    if (!line.empty() && line.front() >= 'A' && line.front() <= 'Z') {
      if (!out.empty()) take_detail(line, out.back());
    } else if (auto entry = parse_maps_line(line)) {
      out.push_back({.map = std::move(*entry)});
    }
  }
  return out;
}

MappingPart part_in_core(const MemoryMapping& mapping, bool full) {
  const MapEntry& map = mapping.map;
  if (mapping.dont_dump || map.path.starts_with("[vvar")) return MappingPart::kNone;
  if (map.path == "[vdso]") return MappingPart::kWhole;
  if (map.inode != 0) return part_of_file(mapping, full);
  return mapping.resident_bytes + mapping.swapped_bytes == 0 ? MappingPart::kNone
                                                             : MappingPart::kPopulated;
}

void join_near(std::vector<AddressRange>& ranges, std::size_t most_gaps) {
  std::uint64_t shortest = kPageBytes;
  const auto gaps = [&] {
    std::size_t count = 0;
    for (std::size_t i = 1; i < ranges.size(); ++i) {
      if (ranges[i].begin - ranges[i - 1].end >= shortest) ++count;
    }
    return count;
  };
  while (gaps() > most_gaps) shortest *= 2;
  std::vector<AddressRange> out;
  for (const AddressRange& range : ranges) {
    if (!out.empty() && range.begin - out.back().end < shortest) {
      out.back().end = range.end;
    } else {
      out.push_back(range);
    }
  }
  ranges = std::move(out);
}

std::vector<MemorySegment> split_at_gaps(MemorySegment segment, std::uint64_t gap) {
  const AddressRange all{segment.map.start, segment.map.end};
  std::vector<MemorySegment> out;
  const auto add = [&](std::uint64_t begin, std::uint64_t end, bool contents) {
    MemorySegment& piece = out.emplace_back();
    piece.map = segment.map;
    piece.map.start = begin;
    piece.map.end = end;
    piece.map.offset += begin - all.begin;
    piece.file_bytes = contents ? end - begin : 0;
    piece.continues = out.size() > 1;
  };
  std::uint64_t done = all.begin;
  for (const AddressRange& range : segment.ranges) {
    if (range.begin - done >= gap) add(done, range.begin, false);
    if (out.empty() || out.back().file_bytes == 0) {
      add(out.empty() ? done : out.back().map.end, range.end, true);
    }
    MemorySegment& last = out.back();
    last.map.end = range.end;
    last.file_bytes = range.end - last.map.start;
    last.ranges.push_back(range);
    done = range.end;
  }
  if (all.end > done) add(done, all.end, false);
  return out;
}

std::vector<MemorySegment> split_vast(MemorySegment segment) {
  constexpr std::uint64_t kVast = 64ULL << 30U;
  constexpr std::uint64_t kGap = 1ULL << 30U;
  if (segment.map.end - segment.map.start >= kVast && segment.file_bytes != 0) {
    return split_at_gaps(std::move(segment), kGap);
  }
  std::vector<MemorySegment> out;
  out.push_back(std::move(segment));
  return out;
}

Result<MappingsText> read_mappings(pid_t pid) {
  const ProcFs proc;
  if (auto text = proc.read(pid, "smaps")) return MappingsText{std::move(*text), true};
  BT_TRY(std::string text, proc.read(pid, "maps"));
  return MappingsText{std::move(text), false};
}

namespace {

bool overlaps_any(const MapEntry& map, std::span<const AddressRange> ranges) {
  return std::ranges::any_of(ranges, [&](const AddressRange& range) {
    return map.start < range.end && range.begin < map.end;
  });
}

std::vector<AddressRange> touched(const MemoryMapping& mapping, PageScan& pages) {
  return pages.populated({mapping.map.start, mapping.map.end},
                         (mapping.resident_bytes + mapping.swapped_bytes) / kPageBytes);
}

/// Keeps the first page, which tells the file from another one of its name.
void add_first_page(const MemoryMapping& mapping, std::vector<AddressRange>& ranges) {
  const std::uint64_t begin = mapping.map.start;
  if (!is_identified_by_first_page(mapping.map)) return;
  if (!ranges.empty() && ranges.front().begin == begin) return;
  ranges.insert(ranges.begin(), {begin, begin + kPageBytes});
}

std::vector<MemorySegment> plan_mapping(const MemoryMapping& mapping, MappingPart part,
                                        PageScan& pages) {
  MemorySegment segment{.map = mapping.map, .file_bytes = 0, .ranges = {}};
  const AddressRange all{mapping.map.start, mapping.map.end};
  const AddressRange first_page{all.begin, all.begin + kPageBytes};
  switch (part) {
    case MappingPart::kNone:
      break;
    case MappingPart::kFirstPage:
      segment.ranges = {first_page};
      segment.file_bytes = kPageBytes;
      break;
    case MappingPart::kPopulated:
      segment.ranges = touched(mapping, pages);
      segment.file_bytes = all.end - all.begin;
      break;
    case MappingPart::kInMemory:
      segment.ranges = touched(mapping, pages);
      add_first_page(mapping, segment.ranges);
      join_near(segment.ranges, kMostGaps);
      return split_at_gaps(std::move(segment), kPageBytes);
    case MappingPart::kWhole:
      segment.ranges = {all};
      segment.file_bytes = all.end - all.begin;
      break;
  }
  return split_vast(std::move(segment));
}

}  // namespace

Result<std::vector<MemorySegment>> plan_memory(pid_t pid, const MappingsText& mappings, bool full,
                                               std::span<const AddressRange> left_out) {
  const bool details = mappings.details;
  const bool foreign = !shares_our_mounts(pid).value_or(true);
  PageScan pages{pid};
  std::vector<MemorySegment> out;
  for (MemoryMapping& mapping : parse_smaps(mappings.text)) {
    if (overlaps_any(mapping.map, left_out) || mapping.map.path == "[vsyscall]") continue;
    // Without details, assume that every mapping has contents and every writable one was changed.
    mapping.out_of_reach = foreign && is_out_of_reach(mapping.map);
    if (!details) mapping.resident_bytes = mapping.map.end - mapping.map.start;
    if (!details && mapping.map.write) mapping.anonymous_bytes = mapping.resident_bytes;
    for (MemorySegment& piece : plan_mapping(mapping, part_in_core(mapping, full), pages)) {
      out.push_back(std::move(piece));
    }
  }
  return out;
}

}  // namespace backtrail::tracee
