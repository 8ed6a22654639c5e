// SPDX-License-Identifier: Apache-2.0
#include "ptrace/core/core_output.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "ptrace/os/plain_file.hpp"

namespace backtrail::tracee {

CoreOutput::CoreOutput(std::string path, std::string temporary, UniqueFd fd,
                       std::uint64_t max_bytes)
    : path_{std::move(path)},
      temporary_{std::move(temporary)},
      fd_{std::move(fd)},
      max_bytes_{max_bytes} {}

CoreOutput::CoreOutput(CoreOutput&& other) noexcept
    : path_{std::move(other.path_)},
      temporary_{std::exchange(other.temporary_, {})},
      fd_{std::move(other.fd_)},
      max_bytes_{other.max_bytes_},
      written_{other.written_},
      length_{other.length_},
      make_room_{std::move(other.make_room_)} {}

Result<CoreOutput> CoreOutput::create(const std::string& path, std::uint64_t max_bytes) {
  if (is_no_plain_file(path)) return fail(TraceErrc::kUnsupported, "replace what is no plain file");
  constexpr int kTries = 100;
  for (int i = 0; i < kTries; ++i) {
    std::string temporary = fmt::format("{}.{}-{}.part", path, ::getpid(), i);
    UniqueFd fd{::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600)};
    if (fd) return CoreOutput{path, std::move(temporary), std::move(fd), max_bytes};
    if (errno != EEXIST) break;
  }
  return fail_errno("create the core file");
}

CoreOutput::~CoreOutput() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

Result<void> CoreOutput::write(std::uint64_t offset, std::span<const std::uint8_t> bytes) {
  while (!bytes.empty()) {
    if (written_ >= max_bytes_) return fail(errno_error(ENOSPC, "write the core file", offset));
    const std::size_t most =
        static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size(), max_bytes_ - written_));
    const ssize_t put = ::pwrite(fd_.get(), bytes.data(), most, static_cast<off_t>(offset));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) {
      const int why = put < 0 ? errno : ENOSPC;
      if ((why == ENOSPC || why == EDQUOT) && make_room_ && make_room_()) continue;
      return fail(errno_error(why, "write the core file", offset));
    }
    offset += static_cast<std::uint64_t>(put);
    length_ = std::max(length_, offset);
    written_ += static_cast<std::uint64_t>(put);
    bytes = bytes.subspan(static_cast<std::size_t>(put));
  }
  return {};
}

Result<void> CoreOutput::overwrite(std::uint64_t offset, std::span<const std::uint8_t> bytes) {
  const std::uint64_t limit = std::exchange(max_bytes_, ~0ULL);
  const auto done = write(offset, bytes);
  max_bytes_ = limit;
  written_ -= std::min<std::uint64_t>(written_, bytes.size());
  return done;
}

Result<void> CoreOutput::cut(std::uint64_t length, std::uint64_t written) {
  if (::ftruncate(fd_.get(), static_cast<off_t>(length)) != 0) {
    return fail_errno("cut the core file", length);
  }
  length_ = length;
  written_ = written;
  return {};
}

Result<void> CoreOutput::extend(std::uint64_t bytes) {
  length_ = std::max(length_, bytes);
  if (::ftruncate(fd_.get(), static_cast<off_t>(length_)) != 0) {
    return fail_errno("extend the core file", bytes);
  }
  return {};
}

std::uint64_t CoreOutput::longest() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return ~0ULL;
  return limit.rlim_cur;
}

Result<void> CoreOutput::commit() {
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) return fail_errno("rename the core file");
  temporary_.clear();
  return {};
}

bool is_out_of_space(const Error& error) {
  return error.is(std::errc::no_space_on_device) || error.is(std::errc::file_too_large) ||
         error.code == std::error_code{EDQUOT, std::generic_category()} ||
         error.code == std::error_code{EDQUOT, std::system_category()};
}

}  // namespace backtrail::tracee
