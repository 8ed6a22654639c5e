// SPDX-License-Identifier: Apache-2.0
#include "server/record/trace_spool.hpp"

#include <algorithm>
#include <deque>
#include <span>

#include "arch/base/log.hpp"
#include "decoder/corefile/trace_blocks.hpp"
#include "decoder/corefile/value_facts.hpp"
#include "decoder/trace/fact_ring.hpp"
#include "ptrace/core/core_output.hpp"
#include "ptrace/os/procfs.hpp"
#include "ptrace/trace/thread_trace.hpp"

namespace backtrail::server {
namespace {

constexpr std::uint64_t kMostLeftFree = 64ULL << 20;
constexpr std::uint64_t kMostLeastHeld = 16ULL << 20;

std::uint64_t others_in(std::span<const decoder::Record> records) {
  return static_cast<std::uint64_t>(std::count_if(
      records.begin(), records.end(),
      [](const decoder::Record& record) { return record.kind != decoder::RecordKind::kBranch; }));
}

bool begins_program(const decoder::Record& record) {
  return record.kind == decoder::RecordKind::kGap && record.reason == decoder::GapReason::kExec;
}

}  // namespace

/// The records of one thread, and the newest facts.
class TraceSpool::Stream final : public decoder::TraceConsumer {
 public:
  Stream(TraceSpool& spool, pid_t tid) : spool_{spool}, tid_{tid} {}

  void consume(std::span<const decoder::Record> records) override {
    // Facts of another program tell nothing of this one's memory.
    if (std::ranges::any_of(records, begins_program)) facts_.clear();
    while (!records.empty()) {
      const std::size_t taken =
          std::min<std::size_t>(records.size(), decoder::kBlockRecords - waiting_.size());
      waiting_.insert(waiting_.end(), records.begin(),
                      records.begin() + static_cast<std::ptrdiff_t>(taken));
      records = records.subspan(taken);
      if (waiting_.size() == decoder::kBlockRecords) put_away();
    }
  }
  void consume_facts(std::span<const decoder::ValueFact> facts) override {
    facts_.append(facts, end());
  }
  [[nodiscard]] tracee::CoreTrace trace();
  bool newest(tracee::CoreTraceBlock& out);
  /// Frees buffers when no records come for a while, because a program may have many ended threads.
  void settle() {
    if (!waiting_.empty()) put_away();
    waiting_ = {};
    packed_ = {};
  }

  std::string name;
  std::deque<Block> blocks;      ///< Oldest first.
  std::uint64_t held_bytes = 0;  ///< Bytes on disk.
  std::size_t handed_out = 0;  ///< Number of the newest blocks that a crash file contains already.

 private:
  void put_away() {
    const Block block = pack(packed_);
    seen_ += block.records;
    others_seen_ += block.others;
    waiting_.clear();
    spool_.append(*this, block, packed_);
  }
  /// Packs the waiting records into a block.
  [[nodiscard]] Block pack(std::vector<std::uint8_t>& out) const {
    out.clear();
    decoder::append_block(static_cast<std::uint32_t>(tid_), seen_, waiting_, out);
    return {.piece = {}, .first = seen_, .records = waiting_.size(), .others = others_in(waiting_)};
  }

  /// Returns the number of records received.
  [[nodiscard]] std::uint64_t end() const { return seen_ + waiting_.size(); }

  TraceSpool& spool_;
  pid_t tid_;
  decoder::FactRing facts_;
  std::vector<decoder::Record> waiting_;
  std::vector<std::uint8_t> packed_;
  std::uint64_t seen_ = 0;  ///< Records written so far.
  std::uint64_t others_seen_ = 0;
  bool waiting_handed_out_ = false;
};

tracee::CoreTrace TraceSpool::Stream::trace() {
  waiting_handed_out_ = waiting_.empty();
  handed_out = 0;
  tracee::CoreTrace out;
  out.tid = static_cast<std::uint32_t>(tid_);
  out.name = name;
  out.end = end();
  out.others = others_seen_ + others_in(waiting_);
  out.held = waiting_.size();
  for (const Block& block : blocks) out.held += block.records;
  const std::uint64_t oldest = blocks.empty() ? seen_ : blocks.front().first;
  decoder::append_facts(out.tid, facts_.since(oldest), 0, out.extra);
  out.newest = [this](tracee::CoreTraceBlock& block) { return newest(block); };
  return out;
}

bool TraceSpool::Stream::newest(tracee::CoreTraceBlock& out) {
  if (!std::exchange(waiting_handed_out_, true)) {
    const Block block = pack(out.bytes);
    out.first = block.first;
    out.records = block.records;
    out.others = block.others;
    return true;
  }
  while (handed_out < blocks.size()) {
    const Block& block = blocks[blocks.size() - ++handed_out];
    auto bytes = spool_.file_.get(block.piece);
    if (!bytes) {
      // Readers of the file show a gap for the missing block.
      log::server().warn("tid={}: {}", tid_, bytes.error().message());
      continue;
    }
    out = {.bytes = std::move(*bytes),
           .first = block.first,
           .records = block.records,
           .others = block.others};
    return true;
  }
  return false;
}

TraceSpool::TraceSpool(const std::string& folder, std::uint64_t max_bytes)
    : file_{folder}, max_bytes_{max_bytes} {
  const std::uint64_t free = file_.free_on_disk();
  constexpr std::uint64_t kShare = 32;
  left_free_ = std::min(free / kShare, kMostLeftFree);
  least_held_ = std::min(free / 2, kMostLeastHeld);
}

TraceSpool::~TraceSpool() = default;

TraceSpool::Stream& TraceSpool::stream_of(const tracee::Thread& thread) {
  auto& place = streams_[{thread.id().pid, thread.tid()}];
  if (!place) place = std::make_unique<Stream>(*this, thread.tid());
  return *place;
}

/// A thread may have the id of one that has ended: it continues that one's records, beginning with
/// a gap.
void TraceSpool::on_thread(tracee::Thread& thread) {
  thread.trace()->hub().add(stream_of(thread));
}

/// The thread now has the leader's id; its records go to that stream from here on.
void TraceSpool::on_exec_thread(tracee::Thread& thread) {
  if (!thread.trace()) return;
  decoder::TraceHub& hub = thread.trace()->hub();
  Stream& own = stream_of(thread);
  thread.trace()->source().flush();
  bool is_new = false;
  for (const auto& [key, stream] : streams_) {
    if (key.first == thread.id().pid && stream.get() != &own) is_new |= hub.remove(*stream);
  }
  if (is_new) hub.add(own, thread.pc().value_or(TraceeAddr{}));
}

void TraceSpool::on_thread_gone(tracee::ThreadId id) {
  const auto found = streams_.find({id.pid, id.tid});
  if (found != streams_.end()) found->second->settle();
}

/// Reads the name, which cannot be read later.
void TraceSpool::on_thread_end(tracee::Thread& thread) {
  const auto found = streams_.find({thread.id().pid, thread.tid()});
  if (found == streams_.end()) return;
  if (const auto name = tracee::ProcFs{}.comm(thread.tid())) found->second->name = *name;
}

void TraceSpool::on_end(pid_t pid, const tracee::StopEvent& /*end*/) {
  for (auto at = streams_.begin(); at != streams_.end();) {
    if (at->first.first != pid) {
      ++at;
      continue;
    }
    for (const Block& block : at->second->blocks) file_.take_out(block.piece);
    at = streams_.erase(at);
  }
}

bool TraceSpool::is_too_much(std::uint64_t more) const {
  const std::uint64_t held = file_.held() + SpoolFile::room_for(more);
  if (held > max_bytes_) return true;
  if (held <= least_held_) return false;
  const std::uint64_t free = file_.free_on_disk();
  return free < left_free_ + more;
}

void TraceSpool::append(Stream& stream, Block block, std::span<const std::uint8_t> bytes) {
  while (is_too_much(bytes.size()) && drop_oldest(1)) {
  }
  for (;;) {
    auto piece = file_.put(bytes);
    if (piece) {
      block.piece = *piece;
      stream.held_bytes += SpoolFile::room_for(block.piece.bytes);
      stream.blocks.push_back(block);
      return;
    }
    // The newest records are worth more than the oldest. If nothing can be freed, a gap before the
    // next block represents the loss.
    if (!tracee::is_out_of_space(piece.error()) || !drop_oldest(0)) {
      log::server().warn("not kept: {}", piece.error().message());
      return;
    }
  }
}

bool TraceSpool::drop_oldest(std::size_t least) {
  Stream* most = nullptr;
  for (const auto& [key, stream] : streams_) {
    if (stream->blocks.size() <= std::max(least, stream->handed_out)) continue;
    if (most == nullptr || stream->held_bytes > most->held_bytes) most = stream.get();
  }
  if (most == nullptr) return least != 0 && drop_oldest(0);
  const Block& oldest = most->blocks.front();
  most->held_bytes -= SpoolFile::room_for(oldest.piece.bytes);
  file_.take_out(oldest.piece);
  most->blocks.pop_front();
  return true;
}

bool TraceSpool::make_room() {
  for (const auto& [key, stream] : streams_) {
    if (stream->handed_out == 0) continue;
    for (; stream->handed_out != 0; --stream->handed_out) {
      const Block& block = stream->blocks.back();
      stream->held_bytes -= SpoolFile::room_for(block.piece.bytes);
      file_.take_out(block.piece);
      stream->blocks.pop_back();
    }
    return true;
  }
  return drop_oldest(0);
}

void TraceSpool::forget_what_was_handed_out() {
  for (const auto& [key, stream] : streams_) stream->handed_out = 0;
}

std::vector<tracee::CoreTrace> TraceSpool::traces(pid_t pid) {
  std::vector<tracee::CoreTrace> out;
  for (const auto& [key, stream] : streams_) {
    if (key.first != pid) continue;
    if (const auto name = tracee::ProcFs{}.comm(key.second)) stream->name = *name;
    out.push_back(stream->trace());
  }
  return out;
}

}  // namespace backtrail::server
