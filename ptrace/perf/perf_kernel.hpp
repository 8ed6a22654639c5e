#pragma once
/// @file
/// The seam: everything that the perf sources ask of the kernel. Tests put a simulated kernel
/// behind it that misbehaves on purpose.

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

  /// perf_event_open(2) on a thread, any CPU, close-on-exec. `attributes.size` is what the caller
  /// set; on E2BIG the kernel's own size is in it afterwards. The plain errno.
  virtual Result<int> open(perf_event_attr& attributes, pid_t tid) = 0;
  virtual void close(int fd) = 0;
  /// Shared memory of an event; read-only unless `writable`, which is what decides about
  /// overwriting.
  virtual Result<std::uint8_t*> map(int fd, std::size_t bytes, bool writable,
                                    std::uint64_t offset) = 0;
  virtual void unmap(std::uint8_t* memory, std::size_t bytes) = 0;
  virtual Result<void> control(int fd, unsigned long request, std::uint64_t argument) = 0;
  /// How many numbers came; 0 is the end of the file.
  virtual Result<std::size_t> read(int fd, std::span<std::uint64_t> out) = 0;
  /// The events of a poll(2) that does not wait.
  virtual Result<short> poll(int fd) = 0;
  /// A position that the kernel moves, with acquire order.
  virtual std::uint64_t load(const __u64& position) = 0;
  /// A position that we move, with release order.
  virtual void store(__u64& position, std::uint64_t value) = 0;
  /// How much memory all buffers of this user may lock; nothing where there is no limit.
  virtual std::optional<std::uint64_t> locked_limit() = 0;
  /// A file below /sys/bus/event_source/devices, without the newline.
  virtual std::optional<std::string> device_file(std::string_view path) = 0;
};

/// The real one.
[[nodiscard]] PerfKernel& system_perf_kernel();

/// The dynamic number of a PMU; nothing when the kernel has none of that name.
[[nodiscard]] std::optional<std::uint32_t> pmu_type(PerfKernel& kernel, std::string_view pmu);

}  // namespace backtrail::tracee
