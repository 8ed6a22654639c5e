// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What stat(2) tells of a file, as far as it says whether the file has been written since.

#include <array>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <string>

#include <sys/stat.h>

#include "ptrace/os/procfs.hpp"

namespace backtrail::tracee {

inline std::uint64_t nanoseconds_of(const timespec& time) {
  constexpr std::uint64_t kInSecond = 1'000'000'000;
  return static_cast<std::uint64_t>(time.tv_sec) * kInSecond +
         static_cast<std::uint64_t>(time.tv_nsec);
}

/// Device, inode, size, time of modification and of change.
using FileFacts = std::array<std::uint64_t, 5>;

inline FileFacts facts_of(const struct stat& file) {
  return {file.st_dev, file.st_ino, static_cast<std::uint64_t>(file.st_size),
          nanoseconds_of(file.st_mtim), nanoseconds_of(file.st_ctim)};
}

inline bool is_same_file(const struct stat& one, const struct stat& other) {
  return one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

/// Returns true if the next write will give the file another time of change, which no program can
/// set. The kernel's clock for these times ticks every few milliseconds.
inline bool is_settled(const struct stat& facts) {
  constexpr std::chrono::nanoseconds kTicks = std::chrono::milliseconds{50};
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return nanoseconds_of(now) >=
         nanoseconds_of(facts.st_ctim) + static_cast<std::uint64_t>(kTicks.count());
}

/// Identifies the machine since it was started: device numbers and times of change mean nothing to
/// another one. Empty if unknown.
inline const std::string& boot_id() {
  static const std::string id = [] {
    const std::string text = ProcFs{}.read("sys/kernel/random/boot_id").value_or("");
    return text.substr(0, text.find('\n'));
  }();
  return id;
}

}  // namespace backtrail::tracee
