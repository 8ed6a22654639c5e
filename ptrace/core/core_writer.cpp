// SPDX-License-Identifier: Apache-2.0
#include "ptrace/core/core_writer.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <future>
#include <numeric>
#include <set>

#include <elf.h>

#include "arch/base/page.hpp"
#include "arch/cpu/program_abi.hpp"
#include "ptrace/core/core_layout.hpp"
#include "ptrace/core/core_output.hpp"
#include "ptrace/core/read_ahead.hpp"
#include "ptrace/core/trace_segment.hpp"
#include "ptrace/os/ptrace_request.hpp"
#include "ptrace/tracee/process.hpp"
#include "ptrace/tracee/thread.hpp"

namespace backtrail::tracee {
namespace {

std::uint32_t segment_flags(const MapEntry& map) {
  return (map.read ? PF_R : 0U) | (map.write ? PF_W : 0U) | (map.execute ? PF_X : 0U);
}

bool all_zero(std::span<const std::uint8_t> bytes) {
  return bytes.front() == 0 && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0;
}

/// Returns the threads in the core's order. Threads that are gone by now are left out.
Result<std::vector<CoreThreadState>> collect_threads(Process& process, const CoreCause& cause) {
  std::vector<CoreThreadState> out;
  for (const auto& thread : process.threads()) {
    auto registers = thread->registers();
    if (!registers) continue;
    CoreThreadState state;
    state.tid = thread->tid();
    state.registers = std::move(*registers);
    state.blocked_signals = request::read_signal_mask(thread->tid()).value_or(0);
    if (thread->tid() == cause.tid) {
      state.siginfo = cause.siginfo;
      out.insert(out.begin(), std::move(state));
    } else {
      out.push_back(std::move(state));
    }
  }
  if (out.empty()) return fail(TraceErrc::kTraceeGone, "read registers for the core");
  return out;
}

/// Returns for each segment the bytes of all segments of its mapping.
std::vector<std::uint64_t> mapping_sizes(const std::vector<MemorySegment>& segments,
                                         const std::vector<std::uint64_t>& sizes) {
  std::vector<std::uint64_t> out(sizes);
  for (std::size_t i = 1; i < out.size(); ++i) {
    if (segments[i].continues) out[i] += out[i - 1];
  }
  for (std::size_t i = out.size(); i-- > 1;) {
    if (segments[i].continues) out[i - 1] = out[i];
  }
  return out;
}

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : " ") + word;
  return out;
}

class CoreWriter {
 public:
  CoreWriter(Process& process, CoreOutput output) : process_{process}, out_{std::move(output)} {}

  Result<CoreResult> run(const CoreCause& cause, std::span<const CoreTrace> traces,
                         const CoreOptions& options, MappingsInAdvance mappings);

 private:
  /// Where a part of a segment goes.
  struct Place {
    std::size_t segment = 0;
    std::uint64_t offset = 0;  ///< Offset in the file.
  };
  Result<void> gather(const CoreCause& cause, const CoreOptions& options,
                      MappingsInAdvance mappings);
  void save_stacks();
  void order_memory(std::uint64_t most);
  void place_memory();
  Result<void> write_memory();
  Result<void> copy_memory(std::optional<Place>& full_disk, bool& is_limit);
  void note_unreadable(AddressRange pages);
  void leave_out_unreadable();
  Result<void> end_memory(const std::optional<Place>& full_disk, bool is_limit);
  /// Writes memory. If stacks and small segments do not fit, drops old trace blocks and writes
  /// again.
  Result<void> write_memory_beside(TraceSegment& traces);
  [[nodiscard]] std::vector<MemoryPart> cut_memory(std::vector<Place>& places) const;
  std::uint64_t fill(std::span<const MemoryPart> parts, std::span<std::uint8_t> out);
  Result<void> write_pages(std::span<const std::uint8_t> bytes, std::uint64_t offset);
  std::uint64_t leave_out(std::size_t index, std::uint64_t saved);
  [[nodiscard]] bool is_needed(std::size_t segment) const { return needed_.contains(segment); }
  std::size_t read(std::uint64_t address, std::span<std::uint8_t> out);

  Process& process_;
  CoreOutput out_;
  CoreNotes notes_;
  CoreLayout layout_;
  std::vector<MemorySegment> memory_;
  std::vector<std::size_t> order_;    ///< Order of writing: indices into memory_.
  std::set<std::size_t> needed_;      ///< Segments that debuggers need most.
  std::uint64_t needed_missing_ = 0;  ///< Bytes of them that did not fit.
  std::map<std::uint64_t, std::vector<std::uint8_t>> saved_;  ///< Pages read early, by address.
  std::vector<AddressRange> unreadable_;                      ///< Pages that could not be read.
  CoreResult result_;
};

Result<void> CoreWriter::gather(const CoreCause& cause, const CoreOptions& options,
                                MappingsInAdvance mappings) {
  const ProcFs proc;
  notes_.isa = process_.isa();
  notes_.signal = cause.signal;
  notes_.about = cause.about;
  if (!mappings.valid()) mappings = read_mappings_in_advance(process_);
  BT_TRY(notes_.threads, collect_threads(process_, cause));
  // If the leader is a zombie, read from a thread that still has its memory; both say the same.
  const pid_t task = notes_.threads.front().tid;
  BT_TRY(notes_.stat, proc.stat(process_.pid()));
  BT_TRY(notes_.status, proc.status(task));
  if (cause.signal == SIGKILL) save_stacks();
  notes_.auxv = proc.auxv(task).value_or(std::vector<std::uint8_t>{});
  notes_.arguments = joined(proc.command_line(task).value_or(std::vector<std::string>{}));
  BT_TRY(const MappingsText text, mappings.get());
  BT_TRY(memory_, plan_memory(task, text, options.full, options.left_out));
  for (const MemorySegment& segment : memory_) {
    if (segment.map.inode == 0) continue;
    if (segment.continues) {
      notes_.files.back().end = segment.map.end;
    } else {
      notes_.files.push_back(segment.map);
    }
  }
  return {};
}

/// Saves stacks early, innermost frames first: a process killed for lack of memory loses its pages
/// while they are being read.
void CoreWriter::save_stacks() {
  constexpr std::size_t kEach = 16 * kPageBytes;
  constexpr std::size_t kMostThreads = 256;
  for (const CoreThreadState& thread : notes_.threads) {
    if (saved_.size() == kMostThreads) return;
    const std::uint64_t begin =
        page_begin(thread.registers.user.sp().value() - arch::cpu::kRedZoneBytes);
    std::vector<std::uint8_t> bytes(kEach);
    std::size_t got = process_.read_memory(TraceeAddr{begin}, bytes);
    got -= got % kPageBytes;
    bytes.resize(got);
    if (got != 0) saved_.insert_or_assign(begin, std::move(bytes));
  }
}

std::size_t CoreWriter::read(std::uint64_t address, std::span<std::uint8_t> out) {
  std::size_t got = process_.read_memory(TraceeAddr{address}, out);
  got -= got % kPageBytes;
  if (got != 0) return got;
  auto after = saved_.upper_bound(address);
  if (after == saved_.begin()) return 0;
  const auto& [begin, bytes] = *--after;
  if (address - begin >= bytes.size()) return 0;
  const auto kept = std::span{bytes}.subspan(address - begin);
  const std::size_t size = std::min(kept.size(), out.size());
  std::copy_n(kept.begin(), size, out.begin());
  return size;
}

/// Orders segments: stacks, then small mappings, then the rest. The small ones hold the data of
/// linkers and libraries that debuggers read first, and matter more than the oldest branches.
void CoreWriter::order_memory(std::uint64_t most) {
  constexpr std::uint64_t kSmallest = 64ULL << 10U;
  constexpr std::uint64_t kSmall = 1ULL << 20U;
  std::set<std::uint64_t> stacks;
  for (const CoreThreadState& thread : notes_.threads) {
    stacks.insert(thread.registers.user.sp().value());
  }
  std::vector<std::uint64_t> sizes;
  for (const MemorySegment& segment : memory_) {
    sizes.push_back(std::accumulate(segment.ranges.begin(), segment.ranges.end(), std::uint64_t{0},
                                    [](std::uint64_t sum, const AddressRange& range) {
                                      return sum + range.end - range.begin;
                                    }));
  }
  const std::vector<std::uint64_t> whole = mapping_sizes(memory_, sizes);
  const auto rank = [&](std::size_t i) {
    const auto stack = stacks.lower_bound(memory_[i].map.start);
    if (stack != stacks.end() && *stack < memory_[i].map.end) return 0;
    if (whole[i] <= kSmallest) return 1;
    return whole[i] <= kSmall ? 2 : 3;
  };
  std::vector<std::pair<int, std::size_t>> ranked;
  for (std::size_t i = 0; i < memory_.size(); ++i) ranked.emplace_back(rank(i), i);
  std::sort(ranked.begin(), ranked.end());
  for (const auto& [group, i] : ranked) {
    order_.push_back(i);
    if (group <= 1) needed_.insert(i);
    if (sizes[i] <= most) {
      most -= sizes[i];
      continue;
    }
    result_.missing_bytes += sizes[i];
    memory_[i].ranges.clear();
    memory_[i].file_bytes = 0;
  }
}

void CoreWriter::place_memory() {
  layout_.loads.resize(memory_.size());
  std::uint64_t at = round_up_to_pages(layout_.trace_offset + layout_.trace_bytes);
  for (const std::size_t i : order_) {
    const MemorySegment& segment = memory_[i];
    layout_.loads[i] = {.address = segment.map.start,
                        .memory_bytes = segment.map.end - segment.map.start,
                        .offset = at,
                        .file_bytes = segment.file_bytes,
                        .flags = segment_flags(segment.map)};
    at += round_up_to_pages(segment.file_bytes);
  }
}

Result<void> CoreWriter::write_pages(std::span<const std::uint8_t> bytes, std::uint64_t offset) {
  std::size_t begin = 0;
  for (std::size_t at = 0; at < bytes.size(); at += kPageBytes) {
    const auto page = bytes.subspan(at, std::min<std::size_t>(kPageBytes, bytes.size() - at));
    if (!all_zero(page)) continue;
    if (at > begin) BT_CHECKED(out_.write(offset + begin, bytes.subspan(begin, at - begin)));
    begin = at + page.size();
  }
  if (begin < bytes.size()) BT_CHECKED(out_.write(offset + begin, bytes.subspan(begin)));
  return {};
}

/// Returns the parts to copy, in the order of writing.
std::vector<MemoryPart> CoreWriter::cut_memory(std::vector<Place>& places) const {
  std::vector<MemoryPart> out;
  for (const std::size_t i : order_) {
    const std::uint64_t to_file = layout_.loads[i].offset - memory_[i].map.start;
    for (const AddressRange& range : memory_[i].ranges) {
      for (std::uint64_t at = range.begin; at < range.end;) {
        const auto bytes = std::min<std::uint64_t>(range.end - at, ReadAhead::kBatchBytes);
        out.push_back({at, static_cast<std::size_t>(bytes)});
        places.push_back({i, to_file + at});
        at += bytes;
      }
    }
  }
  return out;
}

void CoreWriter::note_unreadable(AddressRange pages) {
  if (!unreadable_.empty() && unreadable_.back().end == pages.begin) {
    unreadable_.back().end = pages.end;
  } else {
    unreadable_.push_back(pages);
  }
}

/// @return Number of bytes that could not be read. They are set to zero, and zero pages become
/// holes.
std::uint64_t CoreWriter::fill(std::span<const MemoryPart> parts, std::span<std::uint8_t> out) {
  std::uint64_t unreadable = 0;
  std::size_t got = read_parts(notes_.threads.front().tid, parts, out);
  for (const MemoryPart& part : parts) {
    const auto bytes = out.first(part.bytes);
    out = out.subspan(part.bytes);
    const std::size_t there = std::min(got, bytes.size());
    got -= there;
    process_.breakpoints().mask_read(TraceeAddr{part.address}, bytes.first(there));
    for (std::size_t at = there - there % kPageBytes; at < bytes.size();) {
      const std::size_t more = read(part.address + at, bytes.subspan(at));
      if (more == 0) {
        const std::size_t page = std::min<std::size_t>(kPageBytes, bytes.size() - at);
        std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), page, std::uint8_t{0});
        unreadable += page;
        note_unreadable({part.address + at, part.address + at + page});
        at += page;
      }
      at += more;
    }
  }
  return unreadable;
}

/// Reduces a segment's contents in the file to `saved` bytes.
/// @return Number of bytes left out.
std::uint64_t CoreWriter::leave_out(std::size_t index, std::uint64_t saved) {
  CoreLayout::Load& load = layout_.loads[index];
  std::uint64_t missing = 0;
  for (const AddressRange& range : memory_[index].ranges) {
    const std::uint64_t begin = std::max(range.begin, load.address + saved);
    if (begin < range.end) missing += range.end - begin;
  }
  load.file_bytes = std::min(load.file_bytes, saved);
  result_.missing_bytes += missing;
  return missing;
}

/// Ends segments before pages that could not be read, as those after the end of a file: in the file
/// they would be zeros.
void CoreWriter::leave_out_unreadable() {
  std::ranges::sort(unreadable_, {}, &AddressRange::begin);
  for (CoreLayout::Load& load : layout_.loads) {
    const std::uint64_t end = load.address + load.file_bytes;
    const auto next = std::ranges::lower_bound(unreadable_, end, {}, &AddressRange::begin);
    if (next == unreadable_.begin() || std::prev(next)->end < end) continue;
    load.file_bytes = std::max(std::prev(next)->begin, load.address) - load.address;
  }
}

Result<void> CoreWriter::write_memory() {
  std::optional<Place> full_disk;
  bool is_limit = false;
  unreadable_.clear();
  BT_CHECKED(copy_memory(full_disk, is_limit));
  BT_CHECKED(end_memory(full_disk, is_limit));
  leave_out_unreadable();
  return {};
}

/// @param full_disk Is set to the place that did not fit.
/// @param is_limit Is set to true if it did not fit because of RLIMIT_FSIZE.
Result<void> CoreWriter::copy_memory(std::optional<Place>& full_disk, bool& is_limit) {
  std::vector<Place> places;
  ReadAhead ahead{cut_memory(places),
                  [this](std::span<const MemoryPart> parts, std::span<std::uint8_t> out) {
                    return fill(parts, out);
                  }};
  while (const ReadAhead::Batch* batch = full_disk ? nullptr : ahead.next()) {
    result_.unreadable_bytes += batch->unreadable_bytes;
    std::span<const std::uint8_t> rest{batch->bytes};
    for (std::size_t i = 0; i < batch->count; ++i) {
      const std::size_t bytes = ahead.part(batch->first + i).bytes;
      const Place& place = places[batch->first + i];
      // Traces of other processes may be deleted for stacks, but not for heaps.
      if (!is_needed(place.segment)) out_.set_make_room({});
      const auto written = write_pages(rest.first(bytes), place.offset);
      if (!written && is_out_of_space(written.error())) {
        full_disk = place;
        is_limit = written.error().is(std::errc::file_too_large);
        break;
      }
      BT_CHECKED(written);
      rest = rest.subspan(bytes);
    }
  }
  return {};
}

/// Shortens the segments that did not fit: those from `full_disk` on, or beyond RLIMIT_FSIZE.
Result<void> CoreWriter::end_memory(const std::optional<Place>& full_disk, bool is_limit) {
  std::uint64_t end = layout_.trace_offset + layout_.trace_bytes;
  bool left_out = false;
  for (const std::size_t i : order_) {
    const CoreLayout::Load& load = layout_.loads[i];
    const std::uint64_t wanted = load.file_bytes;
    std::uint64_t saved = wanted;
    if (left_out) saved = 0;
    if (full_disk && full_disk->segment == i) {
      saved = full_disk->offset - load.offset;
      left_out = true;
    }
    // Zero pages are not written, but count towards a file's size.
    const std::uint64_t room = out_.longest() - std::min(out_.longest(), load.offset);
    saved = std::min(saved, page_begin(room));
    if (saved < wanted) {
      const std::uint64_t missing = leave_out(i, saved);
      if (is_needed(i)) needed_missing_ += is_limit ? round_up_to_pages(wanted) : missing;
    }
    if (load.file_bytes != 0) end = std::max(end, load.offset + load.file_bytes);
  }
  return out_.extend(end);
}

Result<void> CoreWriter::write_memory_beside(TraceSegment& traces) {
  const CoreResult before = result_;
  const std::uint64_t written = out_.written();
  BT_CHECKED(write_memory());
  if (needed_missing_ == 0) return {};
  const std::uint64_t given_up = traces.give_up(needed_missing_);
  if (given_up == 0) return {};
  layout_.trace_bytes = traces.bytes();
  BT_CHECKED(out_.cut(layout_.trace_offset + layout_.trace_bytes, written - given_up));
  result_ = before;
  place_memory();
  return write_memory();
}

Result<CoreResult> CoreWriter::run(const CoreCause& cause, std::span<const CoreTrace> traces,
                                   const CoreOptions& options, MappingsInAdvance mappings) {
  BT_CHECKED(gather(cause, options, std::move(mappings)));
  order_memory(options.most_memory);
  out_.set_make_room(options.make_room);
  layout_.isa = notes_.isa;
  layout_.notes_offset = CoreLayout::header_bytes(notes_.isa, memory_.size());
  const auto notes = notes_.build();
  const auto unplaced = CoreNotes::build_index(TraceSegment::empty_index(traces), 0, 0);
  const std::uint64_t index_offset = layout_.notes_offset + notes.size();
  layout_.notes_bytes = notes.size() + unplaced.size();
  layout_.trace_offset = round_up_to_pages(layout_.notes_offset + layout_.notes_bytes);
  // Reserves room for the headers, so that a disk too full for them fails here, before any other
  // work.
  const std::vector<std::uint8_t> room(layout_.notes_offset);
  BT_CHECKED(out_.write(0, room));
  BT_CHECKED(out_.write(layout_.notes_offset, notes));
  BT_CHECKED(out_.write(index_offset, unplaced));
  TraceSegment segment{out_, traces, layout_.trace_offset};
  BT_CHECKED(segment.write());
  layout_.trace_bytes = segment.bytes();
  place_memory();
  BT_CHECKED(write_memory_beside(segment));

  BT_CHECKED(out_.overwrite(0, layout_.headers()));
  BT_CHECKED(out_.overwrite(
      index_offset,
      CoreNotes::build_index(segment.index(), layout_.trace_offset, layout_.trace_bytes)));
  BT_CHECKED(out_.commit());
  result_.older_branches = segment.older_branches();
  result_.records_without_room = segment.records_without_room();
  result_.file_bytes = out_.length();
  result_.disk_bytes = out_.written();
  return result_;
}

}  // namespace

/// For thousands of mappings this takes the kernel as long as reading the registers of all threads,
/// so both run at the same time. Runs deferred if no thread can be created, as after a program that
/// used them all up.
MappingsInAdvance read_mappings_in_advance(Process& process) {
  const Thread* any = process.any_stopped();
  return std::async(std::launch::async | std::launch::deferred, read_mappings,
                    any == nullptr ? process.pid() : any->tid());
}

Result<CoreResult> write_core(Process& process, const CoreCause& cause,
                              std::span<const CoreTrace> traces, const std::string& path,
                              const CoreOptions& options, MappingsInAdvance mappings) {
  BT_TRY(CoreOutput output, CoreOutput::create(path, options.max_bytes));
  return CoreWriter{process, std::move(output)}.run(cause, traces, options, std::move(mappings));
}

}  // namespace backtrail::tracee
