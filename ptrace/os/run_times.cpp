// SPDX-License-Identifier: Apache-2.0
#include "ptrace/os/run_times.hpp"

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>

#include <fcntl.h>
#include <unistd.h>

namespace backtrail::tracee {

OwnRunTimes::OwnRunTimes()
    : schedstat_{::open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC)} {}

std::optional<RunTimes> OwnRunTimes::read() const {
  if (!schedstat_) return std::nullopt;
  std::array<char, 128> text;  // NOLINT: filled by the kernel
  const ssize_t got = ::pread(schedstat_.get(), text.data(), text.size(), 0);
  if (got <= 0) return std::nullopt;
  return parse_run_times({text.data(), static_cast<std::size_t>(got)});
}

std::optional<RunTimes> parse_run_times(std::string_view schedstat) {
  const char* const end = schedstat.data() + schedstat.size();
  std::int64_t ran = 0;
  std::int64_t waited = 0;
  const auto [next, first] = std::from_chars(schedstat.data(), end, ran);
  if (first != std::errc{} || next == end || *next != ' ' || ran <= 0) return std::nullopt;
  const auto [rest, second] = std::from_chars(next + 1, end, waited);
  if (second != std::errc{} || waited < 0) return std::nullopt;
  return RunTimes{std::chrono::nanoseconds{ran}, std::chrono::nanoseconds{waited}};
}

}  // namespace backtrail::tracee
