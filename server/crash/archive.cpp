// SPDX-License-Identifier: Apache-2.0
#include "server/crash/archive.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <vector>

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "ptrace/os/plain_file.hpp"
#include "ptrace/os/unique_fd.hpp"
#include "server/crash/crash_source.hpp"

namespace backtrail::server {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{1} << 20U;

using Entry = std::unique_ptr<archive_entry, decltype(&archive_entry_free)>;

/// Returns the text of a failure: the system's if errno has the cause, else libarchive's.
std::string reason(archive* whose, const char* otherwise) {
  // libarchive's own error numbers are negative, except EILSEQ for a file that is no archive.
  const int error = ::archive_errno(whose);
  if (error > 0 && error != EILSEQ) return std::strerror(error);
  const char* text = ::archive_error_string(whose);
  return text == nullptr ? otherwise : text;
}

/// Returns the parts of a file that have data, in ascending order; holes lie between them.
std::vector<DataPart> data_parts(int fd, off_t size) {
  std::vector<DataPart> parts;
  for (off_t at = 0; at < size;) {
    const off_t data = ::lseek(fd, at, SEEK_DATA);
    if (data < 0 && errno == ENXIO) break;  // Only a hole follows.
    // If lseek() fails, the file system does not know holes: everything counts as data.
    const off_t begin = data < 0 ? at : data;
    const off_t end = data < 0 ? -1 : ::lseek(fd, data, SEEK_HOLE);
    at = end < 0 ? size : std::min(end, size);
    parts.push_back({begin, at});
  }
  return parts;
}

}  // namespace

ArchiveWriter::ArchiveWriter(std::string path, std::string temporary)
    : path_{std::move(path)}, temporary_{std::move(temporary)}, archive_{::archive_write_new()} {}

Explained<std::unique_ptr<ArchiveWriter>> ArchiveWriter::create(const std::string& path) {
  if (tracee::is_no_plain_file(path)) {
    return explain(
        cannot_write(path, "it is not a plain file and is left alone: choose another name"));
  }
  std::unique_ptr<ArchiveWriter> writer{
      new ArchiveWriter{path, fmt::format("{}.{}.part", path, ::getpid())}};
  archive* const out = writer->archive_;
  ::archive_write_set_format_pax_restricted(out);
  if (::archive_write_add_filter_zstd(out) != ARCHIVE_OK ||
      ::archive_write_open_filename(out, writer->temporary_.c_str()) != ARCHIVE_OK) {
    return explain(writer->problem());
  }
  return writer;
}

ArchiveWriter::~ArchiveWriter() {
  ::archive_write_free(archive_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

std::string ArchiveWriter::problem() const {
  return cannot_write(path_, reason(archive_, "unknown reason"));
}

Explained<void> ArchiveWriter::copy(const std::string& file, int fd, DataPart part) {
  std::vector<char> piece(kPieceBytes);
  while (part.begin < part.end) {
    const auto wanted = std::min(piece.size(), static_cast<std::size_t>(part.end - part.begin));
    const ssize_t got = ::pread(fd, piece.data(), wanted, part.begin);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return explain(cannot_read(file, std::strerror(errno)));
    if (got == 0) return explain(cannot_read(file, "it was truncated meanwhile"));
    if (::archive_write_data(archive_, piece.data(), static_cast<std::size_t>(got)) < 0) {
      return explain(problem());
    }
    part.begin += got;
  }
  return {};
}

/// Skips a hole. libarchive counts the bytes and does not store them.
Explained<void> ArchiveWriter::skip(off_t bytes) {
  static const std::vector<char> zeros(kPieceBytes);
  while (bytes > 0) {
    const auto count = std::min(zeros.size(), static_cast<std::size_t>(bytes));
    if (::archive_write_data(archive_, zeros.data(), count) < 0) return explain(problem());
    bytes -= static_cast<off_t>(count);
  }
  return {};
}

Explained<void> ArchiveWriter::add(const std::string& name, const std::string& file) {
  const tracee::UniqueFd fd{::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  struct stat status {};
  if (!fd || ::fstat(fd.get(), &status) != 0) {
    return explain(cannot_read(file, std::strerror(errno)));
  }
  if (!S_ISREG(status.st_mode)) return explain(cannot_read(file, "it is not a plain file"));
  const Entry entry{::archive_entry_new(), ::archive_entry_free};
  constexpr mode_t kOwnerMayWrite = 0200;
  ::archive_entry_set_pathname(entry.get(), name.c_str());
  ::archive_entry_set_filetype(entry.get(), AE_IFREG);
  ::archive_entry_set_size(entry.get(), status.st_size);
  ::archive_entry_set_mtime(entry.get(), status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
  ::archive_entry_set_perm(entry.get(), (status.st_mode & 0777U) | kOwnerMayWrite);
  const std::vector<DataPart> parts = data_parts(fd.get(), status.st_size);
  const bool is_whole = parts.size() == 1 && parts[0].begin == 0 && parts[0].end == status.st_size;
  for (const auto& [begin, end] : parts) {
    if (!is_whole) ::archive_entry_sparse_add_entry(entry.get(), begin, end - begin);
  }
  if (::archive_write_header(archive_, entry.get()) != ARCHIVE_OK) {
    return explain(problem());
  }
  off_t at = 0;
  for (const DataPart& part : parts) {
    if (auto skipped = skip(part.begin - at); !skipped) return skipped;
    if (auto copied = copy(file, fd.get(), part); !copied) return copied;
    at = part.end;
  }
  if (auto skipped = skip(status.st_size - at); !skipped) return skipped;
  ++files_;
  return {};
}

Explained<void> ArchiveWriter::finish() {
  if (::archive_write_close(archive_) != ARCHIVE_OK) return explain(problem());
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) {
    return explain(cannot_write(path_, std::strerror(errno)));
  }
  temporary_.clear();
  return {};
}

Explained<void> unpack_archive(const std::string& path, const std::string& folder) {
  const std::unique_ptr<archive, decltype(&archive_read_free)> in{::archive_read_new(),
                                                                  ::archive_read_free};
  const std::unique_ptr<archive, decltype(&archive_write_free)> out{::archive_write_disk_new(),
                                                                    ::archive_write_free};
  const auto problem = [&](archive* whose) {
    return explain(cannot_read(path, reason(whose, "it is not an archive")));
  };
  ::archive_read_support_filter_zstd(in.get());
  ::archive_read_support_format_tar(in.get());
  ::archive_write_disk_set_options(out.get(), ARCHIVE_EXTRACT_TIME | ARCHIVE_EXTRACT_SPARSE |
                                                  ARCHIVE_EXTRACT_SECURE_NODOTDOT |
                                                  ARCHIVE_EXTRACT_SECURE_SYMLINKS);
  constexpr std::size_t kBlock = 65536;
  if (::archive_read_open_filename(in.get(), path.c_str(), kBlock) != ARCHIVE_OK) {
    return problem(in.get());
  }
  for (;;) {
    archive_entry* entry = nullptr;
    const int got = ::archive_read_next_header(in.get(), &entry);
    if (got == ARCHIVE_EOF) return {};
    if (got < ARCHIVE_WARN) return problem(in.get());
    const char* name = ::archive_entry_pathname(entry);
    if (name == nullptr || *name == '/') {
      return explain(cannot_read(path, "a name in it leads out of the folder"));
    }
    // The archive may come from a stranger: accept only plain files and folders.
    const auto type = ::archive_entry_filetype(entry);
    if (type != AE_IFREG && type != AE_IFDIR) continue;
    if (::archive_entry_hardlink(entry) != nullptr) continue;
    ::archive_entry_set_pathname(entry, (folder + "/" + name).c_str());
    if (::archive_read_extract2(in.get(), entry, out.get()) < ARCHIVE_WARN) {
      return problem(in.get());
    }
  }
}

bool looks_like_archive(const std::string& path) {
  constexpr std::array<char, 4> kMagic{'\x28', '\xb5', '\x2f', '\xfd'};
  std::array<char, 4> begin{};
  // A FIFO without a writer would block the open.
  if (tracee::is_no_plain_file(path)) return false;
  std::ifstream file{path, std::ios::binary};
  return file.read(begin.data(), begin.size()) && begin == kMagic;
}

}  // namespace backtrail::server
