#include "server/record/trace_spool.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>

#include <fcntl.h>
#include <unistd.h>

#include "decoder/corefile/trace_blocks.hpp"
#include "ptrace/os/procfs.hpp"
#include "ptrace/source/thread_trace.hpp"
#include "server/crash/crash_source.hpp"

namespace backtrail::server {
namespace {

tracee::UniqueFd nameless_file(const std::string& folder) {
  constexpr mode_t kOwner = 0600;
  tracee::UniqueFd fd{::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, kOwner)};
  if (fd) return fd;
  // Some file systems have none.
  std::string name = folder + "/.backtrail-XXXXXX";
  fd.reset(::mkostemp(name.data(), O_CLOEXEC));
  if (!fd) throw std::runtime_error{cannot_write(folder, std::strerror(errno))};
  ::unlink(name.c_str());
  return fd;
}

bool write_all(int fd, std::span<const std::uint8_t> bytes, std::uint64_t offset) {
  while (!bytes.empty()) {
    const ssize_t put = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    offset += static_cast<std::uint64_t>(put);
    bytes = bytes.subspan(static_cast<std::size_t>(put));
  }
  return true;
}

}  // namespace

/// One thread's.
class TraceSpool::Listener final : public decoder::TraceConsumer {
 public:
  Listener(TraceSpool& spool, tracee::ThreadId id) : spool_{spool}, id_{id} {}

  void consume(std::span<const decoder::Record> records) override {
    while (!records.empty()) {
      const std::size_t taken =
          std::min<std::size_t>(records.size(), decoder::kBlockRecords - waiting_.size());
      waiting_.insert(waiting_.end(), records.begin(),
                      records.begin() + static_cast<std::ptrdiff_t>(taken));
      records = records.subspan(taken);
      if (waiting_.size() == decoder::kBlockRecords) put_away();
    }
  }
  void put_away() {
    if (waiting_.empty()) return;
    block_.clear();
    decoder::append_block(static_cast<std::uint32_t>(id_.tid), seen_, waiting_, block_);
    seen_ += waiting_.size();
    spool_.append(id_.tid, waiting_.size(), block_);
    waiting_.clear();
  }
  [[nodiscard]] tracee::ThreadId id() const { return id_; }
  /// Put away, ever.
  [[nodiscard]] std::uint64_t seen() const { return seen_; }

  std::string name;

 private:
  TraceSpool& spool_;
  tracee::ThreadId id_;
  std::vector<decoder::Record> waiting_;
  std::vector<std::uint8_t> block_;
  std::uint64_t seen_ = 0;
};

TraceSpool::TraceSpool(const std::string& folder, std::uint64_t max_bytes)
    : fd_{nameless_file(folder)}, max_bytes_{max_bytes} {}

TraceSpool::~TraceSpool() = default;

void TraceSpool::on_thread(tracee::Thread& thread) {
  auto& place = listeners_[thread.tid()];
  if (place) return;
  place = std::make_unique<Listener>(*this, thread.id());
  thread.trace()->hub().add(*place);
}

/// Nobody can ask for its name afterwards.
void TraceSpool::on_thread_end(tracee::Thread& thread) {
  const auto listener = listeners_.find(thread.tid());
  if (listener == listeners_.end()) return;
  if (const auto name = tracee::ProcFs{}.comm(thread.tid())) listener->second->name = *name;
}

void TraceSpool::on_end(pid_t pid, const tracee::StopEvent& /*end*/) {
  std::erase_if(listeners_, [=](const auto& entry) { return entry.second->id().pid == pid; });
  std::erase_if(blocks_, [&](const Block& block) {
    if (listeners_.contains(block.tid)) return false;
    held_ -= block.bytes;
    ::fallocate(fd_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                static_cast<off_t>(block.offset), static_cast<off_t>(block.bytes));
    return true;
  });
}

void TraceSpool::append(pid_t tid, std::uint64_t records, std::span<const std::uint8_t> block) {
  while (held_ + block.size() > max_bytes_ && !blocks_.empty()) drop_oldest();
  bool there = write_all(fd_.get(), block, end_);
  // A full disk: the newest are worth more than the oldest.
  for (int i = 0; !there && i < 64 && !blocks_.empty(); ++i) {
    drop_oldest();
    there = write_all(fd_.get(), block, end_);
  }
  if (!there) {
    ++lost_blocks_;
    return;
  }
  blocks_.push_back({tid, end_, block.size(), records});
  end_ += block.size();
  held_ += block.size();
}

void TraceSpool::drop_oldest() {
  const Block& block = blocks_.front();
  held_ -= block.bytes;
  ::fallocate(fd_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
              static_cast<off_t>(block.offset), static_cast<off_t>(block.bytes));
  blocks_.pop_front();
}

Result<void> TraceSpool::copy(pid_t tid, const tracee::CoreTrace::Sink& sink) const {
  std::vector<std::uint8_t> bytes;
  for (const Block& block : blocks_) {
    if (block.tid != tid) continue;
    bytes.resize(block.bytes);
    const ssize_t got =
        ::pread(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(block.offset));
    if (got != static_cast<ssize_t>(bytes.size())) continue;  // readers show a gap
    BT_CHECKED(sink(bytes));
  }
  return {};
}

std::vector<tracee::CoreTrace> TraceSpool::traces(pid_t pid) {
  std::vector<tracee::CoreTrace> out;
  for (const auto& [tid, listener] : listeners_) {
    if (listener->id().pid != pid) continue;
    listener->put_away();
    if (const auto name = tracee::ProcFs{}.comm(tid)) listener->name = *name;
    std::uint64_t kept = 0;
    for (const Block& block : blocks_) kept += block.tid == tid ? block.records : 0;
    out.push_back({.tid = static_cast<std::uint32_t>(tid),
                   .name = listener->name,
                   .records = kept,
                   .lost = listener->seen() - kept,
                   .write = [this, tid = tid](const tracee::CoreTrace::Sink& sink) {
                     return copy(tid, sink);
                   }});
  }
  return out;
}

}  // namespace backtrail::server
