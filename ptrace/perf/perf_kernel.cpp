// SPDX-License-Identifier: Apache-2.0
#include "ptrace/perf/perf_kernel.hpp"

#include <cerrno>
#include <charconv>
#include <fstream>
#include <iterator>

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ptrace/perf/locked_memory.hpp"

namespace backtrail::tracee {
namespace {

class SystemPerfKernel final : public PerfKernel {
 public:
  Result<int> open(perf_event_attr& attributes, pid_t tid) override {
    constexpr int kAnyCpu = -1;
    constexpr int kNoGroup = -1;
    const long fd =
        ::syscall(SYS_perf_event_open, &attributes, tid, kAnyCpu, kNoGroup, PERF_FLAG_FD_CLOEXEC);
    if (fd < 0) return fail_errno("perf_event_open", static_cast<unsigned>(tid));
    return static_cast<int>(fd);
  }
  void close(int fd) override { ::close(fd); }
  Result<std::uint8_t*> map(int fd, std::size_t bytes, bool writable,
                            std::uint64_t offset) override {
    void* memory = ::mmap(nullptr, bytes, writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED,
                          fd, static_cast<off_t>(offset));
    if (memory == MAP_FAILED) return fail_errno("mmap of a perf event", bytes);
    return static_cast<std::uint8_t*>(memory);
  }
  void unmap(std::uint8_t* memory, std::size_t bytes) override { ::munmap(memory, bytes); }
  Result<void> control(int fd, unsigned long request, std::uint64_t argument) override {
    if (::ioctl(fd, request, argument) < 0) return fail_errno("ioctl of a perf event", request);
    return {};
  }
  Result<std::size_t> read(int fd, std::span<std::uint64_t> out) override {
    const ssize_t count = ::read(fd, out.data(), out.size_bytes());
    if (count < 0) return fail_errno("read of a perf event");
    return static_cast<std::size_t>(count) / sizeof(std::uint64_t);
  }
  Result<short> poll(int fd) override {
    pollfd entry{fd, POLLIN, 0};
    if (::poll(&entry, 1, 0) < 0) return fail_errno("poll of a perf event");
    return entry.revents;
  }
  std::uint64_t load(const __u64& position) override {
    return __atomic_load_n(&position, __ATOMIC_ACQUIRE);
  }
  void store(__u64& position, std::uint64_t value) override {
    __atomic_store_n(&position, value, __ATOMIC_RELEASE);
  }
  std::optional<std::uint64_t> locked_limit() override { return locked_memory_limit(); }
  std::optional<std::string> device_file(std::string_view path) override {
    std::ifstream file{"/sys/bus/event_source/devices/" + std::string{path}};
    std::string line;
    if (!std::getline(file, line)) return std::nullopt;
    return line;
  }
};

}  // namespace

PerfKernel& system_perf_kernel() {
  static SystemPerfKernel kernel;
  return kernel;
}

std::optional<std::uint32_t> pmu_type(PerfKernel& kernel, std::string_view pmu) {
  const auto text = kernel.device_file(std::string{pmu} + "/type");
  std::uint32_t type = 0;
  if (!text || std::from_chars(text->data(), text->data() + text->size(), type).ec != std::errc{})
    return std::nullopt;
  return type;
}

}  // namespace backtrail::tracee
