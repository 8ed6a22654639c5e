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

constexpr std::string_view kDeleted = " (deleted)";
/// Name of the code cache's memory; see ptrace/codecache/memory/cache_memory.cpp.
constexpr std::string_view kOwnMemory = "/memfd:backtrail";

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

MappingPart part_of_file(const MemoryMapping& mapping, bool full) {
  const MapEntry& map = mapping.map;
  if (map.path.starts_with("/dev/") && !map.path.starts_with("/dev/shm/") &&
      !map.path.starts_with("/dev/zero")) {
    return MappingPart::kNone;
  }
  if (map.shared) {
    // Reading a hole of a shared mapping would allocate it.
    return file_is_gone(mapping) || full ? MappingPart::kPopulated : MappingPart::kNone;
  }
  if (full || mapping.anonymous_bytes + mapping.swapped_bytes != 0) return MappingPart::kWhole;
  // If the file of data is gone, only pages in memory are written. ThreadSanitizer covers all
  // read-only memory with mappings of such a file: a thousand, half a megabyte each.
  if (file_is_gone(mapping)) {
    if (map.execute) return MappingPart::kWhole;
    return mapping.resident_bytes == 0 ? MappingPart::kNone : MappingPart::kPopulated;
  }
  return map.offset == 0 && map.read ? MappingPart::kFirstPage : MappingPart::kNone;
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

std::vector<MemorySegment> split_vast(MemorySegment segment) {
  constexpr std::uint64_t kVast = 64ULL << 30U;
  constexpr std::uint64_t kGap = 1ULL << 30U;
  const AddressRange all{segment.map.start, segment.map.end};
  std::vector<MemorySegment> out;
  if (all.end - all.begin < kVast || segment.file_bytes == 0) {
    out.push_back(std::move(segment));
    return out;
  }
  const auto add = [&](std::uint64_t begin, std::uint64_t end, bool contents) {
    MemorySegment& piece = out.emplace_back();
    piece.map = segment.map;
    piece.map.start = begin;
    piece.map.end = end;
    piece.map.offset += begin - all.begin;
    piece.file_bytes = contents ? end - begin : 0;
  };
  std::uint64_t done = all.begin;
  for (const AddressRange& range : segment.ranges) {
    if (range.begin - done >= kGap) add(done, range.begin, false);
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

Result<MappingsText> read_mappings(pid_t pid) {
  const ProcFs proc;
  if (auto text = proc.read(pid, "smaps")) return MappingsText{std::move(*text), true};
  BT_TRY(std::string text, proc.read(pid, "maps"));
  return MappingsText{std::move(text), false};
}

Result<std::vector<MemorySegment>> plan_memory(pid_t pid, const MappingsText& mappings, bool full) {
  const bool details = mappings.details;
  const bool foreign = !shares_our_mounts(pid).value_or(true);
  PageScan pages{pid};
  std::vector<MemorySegment> out;
  for (MemoryMapping& mapping : parse_smaps(mappings.text)) {
    if (mapping.map.path.starts_with(kOwnMemory) || mapping.map.path == "[vsyscall]") continue;
    // Without details, assume that every mapping has contents and every writable one was changed.
    mapping.out_of_reach = foreign && is_out_of_reach(mapping.map);
    if (!details) mapping.resident_bytes = mapping.map.end - mapping.map.start;
    if (!details && mapping.map.write) mapping.anonymous_bytes = mapping.resident_bytes;
    MemorySegment segment{.map = mapping.map, .file_bytes = 0, .ranges = {}};
    const AddressRange all{mapping.map.start, mapping.map.end};
    switch (part_in_core(mapping, full)) {
      case MappingPart::kNone:
        break;
      case MappingPart::kFirstPage:
        segment.ranges = {{all.begin, all.begin + kPageBytes}};
        break;
      case MappingPart::kPopulated:
        segment.ranges =
            pages.populated(all, (mapping.resident_bytes + mapping.swapped_bytes) / kPageBytes);
        segment.file_bytes = all.end - all.begin;
        break;
      case MappingPart::kWhole:
        segment.ranges = {all};
        break;
    }
    if (segment.file_bytes == 0 && !segment.ranges.empty()) {
      segment.file_bytes = segment.ranges.back().end - all.begin;
    }
    for (MemorySegment& piece : split_vast(std::move(segment))) out.push_back(std::move(piece));
  }
  return out;
}

}  // namespace backtrail::tracee
