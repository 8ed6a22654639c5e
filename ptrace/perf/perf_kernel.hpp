// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The seam between the perf sources and the kernel. Tests replace it by a simulated kernel that
/// misbehaves on purpose.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <linux/perf_event.h>
#include <sys/types.h>

#include "arch/base/result.hpp"

namespace backtrail::tracee {

class PerfKernel {
 public:
  virtual ~PerfKernel() = default;

  /// Calls perf_event_open(2) on a thread, for any CPU, close-on-exec. The caller sets
  /// `attributes.size`; after E2BIG it holds the kernel's own size. Errors: the errno.
  virtual Result<int> open(perf_event_attr& attributes, pid_t tid) = 0;
  virtual void close(int fd) = 0;
  /// Maps an event's memory, shared. Read-only unless `writable`; a read-only mapping makes the
  /// kernel overwrite old records.
  virtual Result<std::uint8_t*> map(int fd, std::size_t bytes, bool writable,
                                    std::uint64_t offset) = 0;
  virtual void unmap(std::uint8_t* memory, std::size_t bytes) = 0;
  virtual Result<void> control(int fd, unsigned long request, std::uint64_t argument) = 0;
  /// Returns how many numbers were read; 0 at end of file.
  virtual Result<std::size_t> read(int fd, std::span<std::uint64_t> out) = 0;
  /// Returns the revents of a poll(2) that does not wait.
  virtual Result<short> poll(int fd) = 0;
  /// Loads a position that the kernel advances, with acquire order.
  virtual std::uint64_t load(const __u64& position) = 0;
  /// Stores a position that the server advances, with release order.
  virtual void store(__u64& position, std::uint64_t value) = 0;
  /// Returns how many bytes all buffers of this user may lock; nullopt if there is no limit.
  virtual std::optional<std::uint64_t> locked_limit() = 0;
  /// Returns the first line of a file under /sys/bus/event_source/devices; nullopt if it cannot be
  /// read.
  virtual std::optional<std::string> device_file(std::string_view path) = 0;
};

/// Returns the implementation that makes real system calls.
[[nodiscard]] PerfKernel& system_perf_kernel();

/// Returns the dynamic type number of a PMU; nullopt if the kernel has no PMU of that name.
[[nodiscard]] std::optional<std::uint32_t> pmu_type(PerfKernel& kernel, std::string_view pmu);

}  // namespace backtrail::tracee
