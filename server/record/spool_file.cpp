// SPDX-License-Identifier: Apache-2.0
#include "server/record/spool_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <stdexcept>

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "arch/base/page.hpp"
#include "server/crash/crash_source.hpp"

namespace backtrail::server {
namespace {

tracee::UniqueFd nameless_file(const std::string& folder) {
  constexpr mode_t kOwner = 0600;
  tracee::UniqueFd fd{::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, kOwner)};
  if (fd) return fd;
  // Some file systems do not support nameless files.
  std::string name = folder + "/.backtrail-XXXXXX";
  fd.reset(::mkostemp(name.data(), O_CLOEXEC));
  if (!fd) throw std::runtime_error{cannot_write(folder, std::strerror(errno))};
  ::unlink(name.c_str());
  return fd;
}

}  // namespace

SpoolFile::SpoolFile(const std::string& folder) : fd_{nameless_file(folder)} {}

std::uint64_t SpoolFile::room_for(std::uint64_t bytes) {
  return round_up_to_pages(bytes);
}

std::uint64_t SpoolFile::free_on_disk() const {
  struct statvfs disk {};
  if (::fstatvfs(fd_.get(), &disk) != 0 || disk.f_blocks == 0) return ~0ULL;
  return std::uint64_t{disk.f_bavail} * disk.f_frsize;
}

/// Takes the first free range that is large enough, so that space near the end becomes free.
std::uint64_t SpoolFile::take_room(std::uint64_t bytes) {
  const auto found = std::find_if(free_.begin(), free_.end(),
                                  [=](const auto& room) { return room.second >= bytes; });
  if (found == free_.end()) {
    const std::uint64_t offset = end_;
    end_ += bytes;
    return offset;
  }
  const auto [offset, size] = *found;
  free_.erase(found);
  if (size > bytes) free_.emplace(offset + bytes, size - bytes);
  return offset;
}

void SpoolFile::give_room_back(std::uint64_t offset, std::uint64_t bytes) {
  auto place = free_.emplace(offset, bytes).first;
  const auto next = std::next(place);
  if (next != free_.end() && offset + bytes == next->first) {
    place->second += next->second;
    free_.erase(next);
  }
  if (place != free_.begin()) {
    const auto before = std::prev(place);
    if (before->first + before->second == place->first) {
      before->second += place->second;
      free_.erase(place);
      place = before;
    }
  }
  if (place->first + place->second == end_) {
    end_ = place->first;
    free_.erase(place);
  }
}

Result<SpoolFile::Piece> SpoolFile::put(std::span<const std::uint8_t> bytes) {
  const std::uint64_t room = room_for(bytes.size());
  const Piece piece{take_room(room), bytes.size()};
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t count = ::pwrite(fd_.get(), bytes.data() + done, bytes.size() - done,
                                   static_cast<off_t>(piece.offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      const int why = count < 0 ? errno : ENOSPC;
      held_ += room;
      take_out(piece);
      return fail(errno_error(why, "spool", bytes.size()));
    }
    done += static_cast<std::size_t>(count);
  }
  held_ += room;
  return piece;
}

Result<std::vector<std::uint8_t>> SpoolFile::get(const Piece& piece) const {
  std::vector<std::uint8_t> out(piece.bytes);
  std::size_t done = 0;
  while (done < out.size()) {
    const ssize_t count = ::pread(fd_.get(), out.data() + done, out.size() - done,
                                  static_cast<off_t>(piece.offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail_errno("read what was spooled", piece.offset);
    if (count == 0) return fail(errno_error(ENODATA, "read what was spooled", piece.offset));
    done += static_cast<std::size_t>(count);
  }
  return out;
}

void SpoolFile::take_out(const Piece& piece) {
  const std::uint64_t room = room_for(piece.bytes);
  held_ -= room;
  // If this fails, the space is still reused for later pieces.
  (void)::fallocate(fd_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                    static_cast<off_t>(piece.offset), static_cast<off_t>(room));
  const std::uint64_t end = end_;
  give_room_back(piece.offset, room);
  if (end_ < end) (void)::ftruncate(fd_.get(), static_cast<off_t>(end_));
}

}  // namespace backtrail::server
