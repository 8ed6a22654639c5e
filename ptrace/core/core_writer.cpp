#include "ptrace/core/core_writer.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <future>
#include <numeric>
#include <set>

#include <elf.h>

#include "ptrace/core/core_layout.hpp"
#include "ptrace/core/core_output.hpp"
#include "ptrace/os/ptrace_request.hpp"
#include "ptrace/tracee/process.hpp"
#include "ptrace/tracee/thread.hpp"

namespace backtrail::tracee {
namespace {

constexpr std::uint64_t kPageBytes = 4096;
constexpr std::size_t kPieceBytes = std::size_t{1} << 20U;

std::uint64_t page_up(std::uint64_t bytes) {
  return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
}

std::uint32_t segment_flags(const MapEntry& map) {
  return (map.read ? PF_R : 0U) | (map.write ? PF_W : 0U) | (map.execute ? PF_X : 0U);
}

bool all_zero(std::span<const std::uint8_t> bytes) {
  return bytes.front() == 0 && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0;
}

/// Threads in the core's order; those that are gone meanwhile are left out.
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

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : " ") + word;
  return out;
}

class CoreWriter {
 public:
  CoreWriter(Process& process, CoreOutput output) : process_{process}, out_{std::move(output)} {}

  Result<CoreResult> run(const CoreCause& cause, std::span<const CoreTrace> traces,
                         const CoreOptions& options);

 private:
  Result<void> gather(const CoreCause& cause, bool full);
  void save_stacks();
  void order_memory(std::uint64_t most);
  void place_memory();
  Result<void> write_traces(std::span<const CoreTrace> traces);
  Result<void> write_memory();
  Result<std::uint64_t> write_segment(std::size_t index);
  Result<std::uint64_t> copy(AddressRange range, std::uint64_t offset);
  Result<void> write_pages(std::span<const std::uint8_t> bytes, std::uint64_t offset);
  std::size_t read(std::uint64_t address, std::span<std::uint8_t> out);

  Process& process_;
  CoreOutput out_;
  CoreNotes notes_;
  CoreLayout layout_;
  std::vector<MemorySegment> memory_;
  std::vector<std::size_t> order_;                            ///< Of writing: indices into memory_.
  std::map<std::uint64_t, std::vector<std::uint8_t>> saved_;  ///< Pages read early, by address.
  std::vector<std::uint8_t> piece_ = std::vector<std::uint8_t>(kPieceBytes);
  CoreResult result_;
};

Result<void> CoreWriter::gather(const CoreCause& cause, bool full) {
  const ProcFs proc;
  notes_.isa = process_.isa();
  notes_.signal = cause.signal;
  notes_.about = cause.about;
  // Of thousands of mappings that takes the kernel as long as their threads' registers. Later where
  // no thread can be made: a program that ran out of them leaves none to us.
  const Thread* any = process_.any_stopped();
  auto mappings = std::async(std::launch::async | std::launch::deferred, read_mappings,
                             any == nullptr ? process_.pid() : any->tid());
  BT_TRY(notes_.threads, collect_threads(process_, cause));
  // The leader may be a zombie while other threads die: then theirs say the same.
  const pid_t task = notes_.threads.front().tid;
  BT_TRY(notes_.stat, proc.stat(process_.pid()));
  BT_TRY(notes_.status, proc.status(task));
  if (cause.signal == SIGKILL) save_stacks();
  notes_.auxv = proc.auxv(task).value_or(std::vector<std::uint8_t>{});
  notes_.arguments = joined(proc.command_line(task).value_or(std::vector<std::string>{}));
  BT_TRY(const MappingsText text, mappings.get());
  BT_TRY(memory_, plan_memory(task, text, full));
  for (const MemorySegment& segment : memory_) {
    if (segment.map.inode != 0) notes_.files.push_back(segment.map);
  }
  return {};
}

/// A process that is out of memory loses it while we read: the innermost frames come first.
void CoreWriter::save_stacks() {
  constexpr std::uint64_t kRedZone = 128;
  constexpr std::size_t kEach = 16 * kPageBytes;
  constexpr std::size_t kMostThreads = 256;
  for (const CoreThreadState& thread : notes_.threads) {
    if (saved_.size() == kMostThreads) return;
    const std::uint64_t begin =
        (thread.registers.user.sp().value() - kRedZone) / kPageBytes * kPageBytes;
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

/// Stacks first; then what is small, where linkers and libraries keep what debuggers ask for first.
void CoreWriter::order_memory(std::uint64_t most) {
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
  const auto rank = [&](std::size_t i) {
    const auto stack = stacks.lower_bound(memory_[i].map.start);
    if (stack != stacks.end() && *stack < memory_[i].map.end) return 0;
    return sizes[i] <= kSmall ? 1 : 2;
  };
  std::vector<std::pair<int, std::size_t>> ranked;
  for (std::size_t i = 0; i < memory_.size(); ++i) ranked.emplace_back(rank(i), i);
  std::sort(ranked.begin(), ranked.end());
  for (const auto& [unused, i] : ranked) {
    order_.push_back(i);
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
  std::uint64_t at = page_up(layout_.trace_offset + layout_.trace_bytes);
  for (const std::size_t i : order_) {
    const MemorySegment& segment = memory_[i];
    layout_.loads[i] = {.address = segment.map.start,
                        .memory_bytes = segment.map.end - segment.map.start,
                        .offset = at,
                        .file_bytes = segment.file_bytes,
                        .flags = segment_flags(segment.map)};
    at += page_up(segment.file_bytes);
  }
}

Result<void> CoreWriter::write_traces(std::span<const CoreTrace> traces) {
  std::uint64_t at = layout_.trace_offset;
  for (const CoreTrace& trace : traces) {
    const auto written = trace.write([&](std::span<const std::uint8_t> block) -> Result<void> {
      BT_CHECKED(out_.write(at, block));
      at += block.size();
      return {};
    });
    if (!written && !is_out_of_space(written.error())) return written;
    if (!written) break;
  }
  layout_.trace_bytes = at - layout_.trace_offset;
  return {};
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

/// Pages that cannot be read stay holes.
/// @return How much of the range is in the file when the disk is full; all of it otherwise.
Result<std::uint64_t> CoreWriter::copy(AddressRange range, std::uint64_t offset) {
  for (std::uint64_t at = range.begin; at < range.end;) {
    const std::size_t wanted =
        static_cast<std::size_t>(std::min<std::uint64_t>(range.end - at, piece_.size()));
    const std::size_t got = read(at, std::span{piece_}.first(wanted));
    if (got == 0) {
      result_.unreadable_bytes += kPageBytes;
      at += kPageBytes;
      continue;
    }
    const auto written = write_pages(std::span{piece_}.first(got), offset + (at - range.begin));
    if (!written && is_out_of_space(written.error())) return at - range.begin;
    BT_CHECKED(written);
    at += got;
  }
  return range.end - range.begin;
}

/// @return How much of the segment is in the file when the disk is full; all of it otherwise.
Result<std::uint64_t> CoreWriter::write_segment(std::size_t index) {
  const MemorySegment& segment = memory_[index];
  const CoreLayout::Load& load = layout_.loads[index];
  for (const AddressRange& range : segment.ranges) {
    const std::uint64_t before = range.begin - segment.map.start;
    BT_TRY(const std::uint64_t copied, copy(range, load.offset + before));
    if (copied < range.end - range.begin) return (before + copied) / kPageBytes * kPageBytes;
  }
  return load.file_bytes;
}

Result<void> CoreWriter::write_memory() {
  bool full_disk = false;
  std::uint64_t end = layout_.trace_offset + layout_.trace_bytes;
  for (const std::size_t i : order_) {
    CoreLayout::Load& load = layout_.loads[i];
    std::uint64_t saved = 0;
    if (!full_disk) {
      BT_TRY(saved, write_segment(i));
    }
    if (saved < load.file_bytes) {
      full_disk = true;
      for (const AddressRange& range : memory_[i].ranges) {
        const std::uint64_t begin = std::max(range.begin, load.address + saved);
        if (begin < range.end) result_.missing_bytes += range.end - begin;
      }
      load.file_bytes = saved;
    }
    if (load.file_bytes != 0) end = std::max(end, load.offset + load.file_bytes);
  }
  return out_.extend(end);
}

Result<CoreResult> CoreWriter::run(const CoreCause& cause, std::span<const CoreTrace> traces,
                                   const CoreOptions& options) {
  BT_CHECKED(gather(cause, options.full));
  order_memory(options.most_memory);
  layout_.isa = notes_.isa;
  layout_.notes_offset = CoreLayout::header_bytes(notes_.isa, memory_.size());
  const auto notes = notes_.build();
  const auto unplaced = CoreNotes::build_index(traces, 0, 0);
  const std::uint64_t index_offset = layout_.notes_offset + notes.size();
  layout_.notes_bytes = notes.size() + unplaced.size();
  layout_.trace_offset = page_up(layout_.notes_offset + layout_.notes_bytes);
  // Room that the headers will need: a full disk shows now, when nothing can be saved anyway.
  const std::vector<std::uint8_t> room(layout_.notes_offset);
  BT_CHECKED(out_.write(0, room));
  BT_CHECKED(out_.write(layout_.notes_offset, notes));
  BT_CHECKED(out_.write(index_offset, unplaced));
  BT_CHECKED(write_traces(traces));
  place_memory();
  BT_CHECKED(write_memory());

  BT_CHECKED(out_.overwrite(0, layout_.headers()));
  BT_CHECKED(out_.overwrite(
      index_offset, CoreNotes::build_index(traces, layout_.trace_offset, layout_.trace_bytes)));
  BT_CHECKED(out_.commit());
  result_.file_bytes = out_.length();
  result_.disk_bytes = out_.written();
  return result_;
}

}  // namespace

Result<CoreResult> write_core(Process& process, const CoreCause& cause,
                              std::span<const CoreTrace> traces, const std::string& path,
                              const CoreOptions& options) {
  BT_TRY(CoreOutput output, CoreOutput::create(path, options.max_bytes));
  return CoreWriter{process, std::move(output)}.run(cause, traces, options);
}

}  // namespace backtrail::tracee
