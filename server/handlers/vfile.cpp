// SPDX-License-Identifier: Apache-2.0
// vFile: opens files of this machine, so that gdb can read programs and libraries from it.

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <string>

#include <fmt/format.h>

#include "server/handlers/handlers.hpp"
#include "server/rsp/binary_escape.hpp"
#include "server/rsp/hex.hpp"
#include "server/session/packet_text.hpp"

namespace backtrail::server::handlers {
namespace {

/// Largest answer to a read. gdb reads small pieces but asks for a full packet each time, and over
/// a pipe it makes one system call a byte.
constexpr std::uint64_t kMostRead = 16ULL << 10;

struct ErrnoRow {
  int host;
  int wire;
};

// Source: GDB manual, "Errno Values".
constexpr std::array kErrnos = {
    ErrnoRow{EPERM, 1},         ErrnoRow{ENOENT, 2},  ErrnoRow{EINTR, 4},    ErrnoRow{EIO, 5},
    ErrnoRow{EBADF, 9},         ErrnoRow{EACCES, 13}, ErrnoRow{EFAULT, 14},  ErrnoRow{EBUSY, 16},
    ErrnoRow{EEXIST, 17},       ErrnoRow{ENODEV, 19}, ErrnoRow{ENOTDIR, 20}, ErrnoRow{EISDIR, 21},
    ErrnoRow{EINVAL, 22},       ErrnoRow{ENFILE, 23}, ErrnoRow{EMFILE, 24},  ErrnoRow{EFBIG, 27},
    ErrnoRow{ENOSPC, 28},       ErrnoRow{ESPIPE, 29}, ErrnoRow{EROFS, 30},   ErrnoRow{ENOSYS, 88},
    ErrnoRow{ENAMETOOLONG, 91},
};
constexpr int kUnknownErrno = 9999;

Reply failure(int host_errno) {
  const auto* row = std::ranges::find(kErrnos, host_errno, &ErrnoRow::host);
  return Reply::text(fmt::format("F-1,{:x}", row == kErrnos.end() ? kUnknownErrno : row->wire));
}

Reply failure(const Error& error) {
  return failure(error.code.category() == std::system_category() ||
                         error.code.category() == std::generic_category()
                     ? error.code.value()
                     : EIO);
}

Reply malformed() {
  return failure(EINVAL);
}

Reply success(std::uint64_t value) {
  return Reply::text(fmt::format("F{:x}", value));
}

/// Returns the number of bytes that fitted, a semicolon, and the bytes.
Reply data_reply(std::span<const std::uint8_t> data) {
  std::string escaped;
  const std::size_t taken = rsp::append_escaped(data, Session::kPacketSize - 32, escaped);
  return Reply::text(fmt::format("F{:x};", taken) + escaped);
}

// Source: GDB manual, "Open Flags".
constexpr std::uint64_t kAccessMask = 0x3;
constexpr std::uint64_t kAppend = 0x8;
constexpr std::uint64_t kCreate = 0x200;
constexpr std::uint64_t kTruncate = 0x400;
constexpr std::uint64_t kExclusive = 0x800;

std::optional<int> host_open_flags(std::uint64_t wire) {
  constexpr std::uint64_t kAll = kAccessMask | kAppend | kCreate | kTruncate | kExclusive;
  if ((wire & ~kAll) != 0 || (wire & kAccessMask) == kAccessMask) return std::nullopt;
  int flags = (wire & kAccessMask) == 0 ? O_RDONLY : (wire & kAccessMask) == 1 ? O_WRONLY : O_RDWR;
  if ((wire & kAppend) != 0) flags |= O_APPEND;
  if ((wire & kCreate) != 0) flags |= O_CREAT;
  if ((wire & kTruncate) != 0) flags |= O_TRUNC;
  if ((wire & kExclusive) != 0) flags |= O_EXCL;
  return flags;
}

/// Takes a path in hex up to the next comma.
std::optional<std::string> take_path(PacketText& text) {
  auto path = rsp::text_from_hex(text.take_field(','));
  if (!path || path->empty() || path->find('\0') != std::string::npos) return std::nullopt;
  return path;
}

std::optional<int> take_file(PacketText& text) {
  const auto file = text.take_hex();
  if (!file || *file > std::numeric_limits<int>::max()) return std::nullopt;
  return static_cast<int>(*file);
}

std::optional<std::uint64_t> take_offset(PacketText& text) {
  const auto offset = text.take_hex();
  if (!offset || *offset > std::numeric_limits<std::int64_t>::max()) return std::nullopt;
  return offset;
}

Reply set_file_system(SessionContext& context, PacketText text) {
  const auto pid = take_file(text);
  if (!pid || !text.at_end()) return malformed();
  context.files.set_file_system(context.target.has_own_files(*pid) ? *pid : 0);
  return success(0);
}

Reply open_file(SessionContext& context, PacketText text) {
  const auto path = take_path(text);
  const auto numbers = take_hex_pair(text);
  if (!path || !numbers || !text.at_end()) return malformed();
  const auto flags = host_open_flags(numbers->first);
  if (!flags) return malformed();
  const auto file = context.files.open(context.target.file_path(*path), *flags,
                                       static_cast<mode_t>(numbers->second & 07777));
  return file ? success(static_cast<std::uint64_t>(*file)) : failure(file.error());
}

Reply read_file(SessionContext& context, PacketText text) {
  const auto file = take_file(text);
  if (!file || !text.take(',')) return malformed();
  const auto count = text.take_hex();
  if (!count || !text.take(',')) return malformed();
  const auto offset = take_offset(text);
  if (!offset || !text.at_end()) return malformed();
  const std::size_t size_bytes =
      static_cast<std::size_t>(std::min<std::uint64_t>(*count, kMostRead));
  const auto data = context.files.read(*file, size_bytes, *offset);
  return data ? data_reply(*data) : failure(data.error());
}

Reply write_file(SessionContext& context, PacketText text) {
  const auto file = take_file(text);
  if (!file || !text.take(',')) return malformed();
  const auto offset = take_offset(text);
  if (!offset || !text.take(',')) return malformed();
  const auto data = rsp::unescape_binary(text.rest());
  if (!data) return malformed();
  const auto written = context.files.write(*file, *data, *offset);
  return written ? success(*written) : failure(written.error());
}

Reply close_file(SessionContext& context, PacketText text) {
  const auto file = take_file(text);
  if (!file || !text.at_end()) return malformed();
  const auto closed = context.files.close(*file);
  return closed ? success(0) : failure(closed.error());
}

// Source: GDB manual, "mode_t Values": POSIX's octal values, and three file types.
std::uint32_t wire_mode(mode_t mode) {
  std::uint32_t kind = 0;
  if (S_ISREG(mode)) kind = 0100000;
  if (S_ISDIR(mode)) kind = 040000;
  if (S_ISCHR(mode)) kind = 020000;
  return kind | (mode & 0777U);
}

/// Returns 64 bytes, big-endian, without padding. Source: GDB manual, "struct stat".
Reply stat_reply(const struct stat& status) {
  std::vector<std::uint8_t> out;
  const auto put = [&out](std::uint64_t value, unsigned bytes) {
    for (unsigned i = bytes; i > 0; --i) {
      out.push_back(static_cast<std::uint8_t>(value >> (8 * (i - 1))));
    }
  };
  put(status.st_dev, 4);
  put(status.st_ino, 4);
  put(wire_mode(status.st_mode), 4);
  put(status.st_nlink, 4);
  put(status.st_uid, 4);
  put(status.st_gid, 4);
  put(status.st_rdev, 4);
  put(static_cast<std::uint64_t>(status.st_size), 8);
  put(static_cast<std::uint64_t>(status.st_blksize), 8);
  put(static_cast<std::uint64_t>(status.st_blocks), 8);
  put(static_cast<std::uint64_t>(status.st_atime), 4);
  put(static_cast<std::uint64_t>(status.st_mtime), 4);
  put(static_cast<std::uint64_t>(status.st_ctime), 4);
  return data_reply(out);
}

Reply status_of_file(SessionContext& context, PacketText text) {
  const auto file = take_file(text);
  if (!file || !text.at_end()) return malformed();
  const auto status = context.files.status(*file);
  return status ? stat_reply(*status) : failure(status.error());
}

Reply status_of_path(SessionContext& context, PacketText text) {
  const auto path = take_path(text);
  if (!path || !text.at_end()) return malformed();
  const auto status = context.files.link_status(context.target.file_path(*path));
  return status ? stat_reply(*status) : failure(status.error());
}

Reply unlink_file(SessionContext& context, PacketText text) {
  const auto path = take_path(text);
  if (!path || !text.at_end()) return malformed();
  const auto done = context.files.unlink(*path);
  return done ? success(0) : failure(done.error());
}

Reply read_link(SessionContext& context, PacketText text) {
  const auto path = take_path(text);
  if (!path || !text.at_end()) return malformed();
  const auto target = context.files.read_link(context.target.file_path(*path));
  if (!target) return failure(target.error());
  return data_reply(
      std::span{reinterpret_cast<const std::uint8_t*>(target->data()), target->size()});
}

template <Reply (*kHandle)(SessionContext&, PacketText)>
Reply with_text(SessionContext& context, std::string_view arguments) {
  return kHandle(context, PacketText{arguments});
}

constexpr std::array kFilePackets = {
    PacketEntry{"vFile:setfs:", PacketMatch::kPrefix, with_text<set_file_system>},
    PacketEntry{"vFile:open:", PacketMatch::kPrefix, with_text<open_file>},
    PacketEntry{"vFile:pread:", PacketMatch::kPrefix, with_text<read_file>},
    PacketEntry{"vFile:pwrite:", PacketMatch::kPrefix, with_text<write_file>},
    PacketEntry{"vFile:close:", PacketMatch::kPrefix, with_text<close_file>},
    PacketEntry{"vFile:fstat:", PacketMatch::kPrefix, with_text<status_of_file>},
    PacketEntry{"vFile:stat:", PacketMatch::kPrefix, with_text<status_of_path>},
    PacketEntry{"vFile:unlink:", PacketMatch::kPrefix, with_text<unlink_file>},
    PacketEntry{"vFile:readlink:", PacketMatch::kPrefix, with_text<read_link>},
};

}  // namespace

std::span<const PacketEntry> vfile_packets() {
  return kFilePackets;
}

}  // namespace backtrail::server::handlers
