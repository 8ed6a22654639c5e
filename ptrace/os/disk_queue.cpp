// SPDX-License-Identifier: Apache-2.0
#include "ptrace/os/disk_queue.hpp"

#include <algorithm>
#include <cerrno>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace backtrail::tracee {
namespace {

/// Holes are punched in steps of this size.
constexpr std::uint64_t kStep = 16ULL << 20U;

}  // namespace

Result<DiskQueue> DiskQueue::create(const std::string& folder, std::uint64_t most_bytes) {
  UniqueFd file{::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, S_IRUSR | S_IWUSR)};
  if (!file && (errno == EOPNOTSUPP || errno == EISDIR)) {
    // The file system does not support O_TMPFILE.
    std::string name = folder + "/backtrail-XXXXXX";
    file.reset(::mkostemp(name.data(), O_CLOEXEC));
    if (file) ::unlink(name.c_str());
  }
  if (!file) return fail_errno("open a file to spool to");
  return DiskQueue{std::move(file), most_bytes};
}

Result<void> DiskQueue::push(std::span<const std::uint8_t> bytes) {
  if (bytes.size() > most_bytes_ - std::min(most_bytes_, waiting()))
    return fail(errno_error(ENOSPC, "spool"));
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t count = ::pwrite(file_.get(), bytes.data() + done, bytes.size() - done,
                                   static_cast<off_t>(end_ + done));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return fail_errno("spool");
    done += static_cast<std::size_t>(count);
  }
  end_ += bytes.size();
  return {};
}

Result<std::size_t> DiskQueue::pop(std::span<std::uint8_t> out) {
  const std::size_t wanted =
      static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), waiting()));
  std::size_t done = 0;
  while (done < wanted) {
    const ssize_t count =
        ::pread(file_.get(), out.data() + done, wanted - done, static_cast<off_t>(begin_ + done));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return fail_errno("read what was spooled");
    done += static_cast<std::size_t>(count);
  }
  begin_ += done;
  give_back();
  return done;
}

void DiskQueue::give_back() {
  if (begin_ == end_) {
    // If this fails, the file only stays larger than necessary.
    if (end_ != 0 && ::ftruncate(file_.get(), 0) == 0) begin_ = end_ = given_back_ = 0;
    return;
  }
  if (begin_ - given_back_ < kStep) return;
  const std::uint64_t size = (begin_ - given_back_) / kStep * kStep;
  (void)::fallocate(file_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                    static_cast<off_t>(given_back_), static_cast<off_t>(size));
  given_back_ += size;
}

}  // namespace backtrail::tracee
