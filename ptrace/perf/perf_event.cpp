#include "ptrace/perf/perf_event.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>
#include <poll.h>

#include "arch/base/check.hpp"

namespace backtrail::tracee {
namespace {

constexpr std::uint64_t kPageBytes = 4096;
/// PERF_FORMAT_LOST, Linux 6.0.
constexpr std::uint64_t kFormatLost = 1U << 4U;
constexpr std::uint64_t kFormat = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;

std::uint64_t whole_pages(std::uint64_t bytes) {
  return std::bit_ceil(std::max<std::uint64_t>((bytes + kPageBytes - 1) / kPageBytes, 1)) *
         kPageBytes;
}

/// A smaller buffer may be granted.
bool may_shrink(const Error& error) {
  return error.code.value() == EPERM || error.code.value() == ENOMEM;
}

/// Nothing that we ask for lies behind the attribute's first `size` bytes.
bool fits(const perf_event_attr& attributes, std::size_t size) {
  std::array<unsigned char, sizeof(perf_event_attr)> bytes{};
  std::memcpy(bytes.data(), &attributes, sizeof attributes);
  return size >= PERF_ATTR_SIZE_VER0 && size < bytes.size() &&
         std::all_of(bytes.begin() + static_cast<std::ptrdiff_t>(size), bytes.end(),
                     [](unsigned char byte) { return byte == 0; });
}

}  // namespace

Result<PerfEvent> PerfEvent::open(PerfKernel& kernel, const perf_event_attr& wanted, pid_t tid) {
  perf_event_attr attributes = wanted;
  attributes.size = sizeof attributes;
  attributes.read_format = kFormat | kFormatLost;
  bool busy_once = false;
  constexpr int kAttempts = 16;
  Error last;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    perf_event_attr offered = attributes;
    const auto fd = kernel.open(offered, tid);
    if (fd) return PerfEvent{kernel, *fd, (attributes.read_format & kFormatLost) != 0};
    last = fd.error();
    switch (last.code.value()) {
      case EINTR:
        break;
      case E2BIG:
        if (offered.size == attributes.size || !fits(attributes, offered.size)) return fail(last);
        attributes.size = offered.size;
        break;
      case EINVAL:
        if ((attributes.read_format & kFormatLost) == 0) return fail(last);
        attributes.read_format = kFormat;
        break;
      case EBUSY:
        if (std::exchange(busy_once, true)) return fail(last);
        break;
      case ESRCH:
        return fail(TraceErrc::kTraceeGone, "perf_event_open", static_cast<unsigned>(tid));
      default:
        return fail(last);
    }
  }
  return fail(last);
}

PerfEvent::PerfEvent(PerfEvent&& other) noexcept
    : kernel_{other.kernel_},
      fd_{std::exchange(other.fd_, -1)},
      counts_lost_{other.counts_lost_},
      mode_{other.mode_},
      page_{std::exchange(other.page_, nullptr)},
      mapping_{std::exchange(other.mapping_, {})},
      aux_{std::exchange(other.aux_, {})},
      data_{std::exchange(other.data_, {})} {}

PerfEvent::~PerfEvent() {
  if (!aux_.empty()) kernel_->unmap(aux_.data(), aux_.size());
  if (!mapping_.empty()) kernel_->unmap(mapping_.data(), mapping_.size());
  if (fd_ >= 0) kernel_->close(fd_);
}

Result<void> PerfEvent::map_data(std::uint64_t bytes, bool writable) {
  BT_TRY(std::uint8_t * memory, kernel_->map(fd_, bytes + kPageBytes, writable, 0));
  mapping_ = {memory, bytes + kPageBytes};
  page_ = reinterpret_cast<perf_event_mmap_page*>(memory);  // NOLINT: what the kernel puts there
  data_ = mapping_.subspan(kPageBytes);
  return {};
}

Result<void> PerfEvent::map_aux(std::uint64_t bytes, bool writable) {
  page_->aux_offset = mapping_.size();
  page_->aux_size = bytes;
  BT_TRY(std::uint8_t * memory, kernel_->map(fd_, bytes, writable, mapping_.size()));
  aux_ = {memory, bytes};
  return {};
}

Result<void> PerfEvent::map(const BufferRequest& request) {
  mode_ = request.mode;
  const bool stream = mode_ == BufferMode::kStream;
  // With an AUX area the ring holds only its records, and its header says where the area is: that
  // must be writable in either mode.
  const bool writable = stream || request.aux_bytes != 0;
  for (std::uint64_t bytes = whole_pages(request.data_bytes);; bytes /= 2) {
    const auto mapped = map_data(bytes, writable);
    if (mapped) break;
    if (!may_shrink(mapped.error()) || bytes == kPageBytes) return fail(mapped.error());
  }
  if (request.aux_bytes == 0) return {};
  for (std::uint64_t bytes = whole_pages(request.aux_bytes);; bytes /= 2) {
    const auto mapped = map_aux(bytes, stream);
    if (mapped) return {};
    if (!may_shrink(mapped.error()) || bytes == kPageBytes) return fail(mapped.error());
  }
}

void PerfEvent::set_data_tail(std::uint64_t tail) {
  kernel_->store(page_->data_tail, tail);
}

void PerfEvent::set_aux_tail(std::uint64_t tail) {
  // A tail beyond the head makes the kernel give the event up.
  BT_CHECK(static_cast<std::int64_t>(aux_head() - tail) >= 0);
  kernel_->store(page_->aux_tail, tail);
}

Result<void> PerfEvent::enable() {
  return kernel_->control(fd_, PERF_EVENT_IOC_ENABLE, 0);
}
Result<void> PerfEvent::disable() {
  return kernel_->control(fd_, PERF_EVENT_IOC_DISABLE, 0);
}
Result<void> PerfEvent::pause_output(bool on) {
  return kernel_->control(fd_, PERF_EVENT_IOC_PAUSE_OUTPUT, on ? 1 : 0);
}

Result<EventTimes> PerfEvent::times() const {
  std::array<std::uint64_t, 4> words{};
  BT_TRY(const std::size_t count, kernel_->read(fd_, std::span{words}.first(counts_lost_ ? 4 : 3)));
  EventTimes out;
  out.in_error = count == 0;
  out.enabled = words[1];
  out.running = words[2];
  if (counts_lost_ && count == words.size()) out.lost = words[3];
  return out;
}

bool PerfEvent::dead() const {
  const auto events = kernel_->poll(fd_);
  return !events || (*events & POLLHUP) != 0;
}

std::string explain_perf_error(const Error& error) {
  const int value = error.code.value();
  const char* text = "the kernel or the CPU cannot do this";
  switch (value) {
    case ENOENT:
      text = "no such unit: the CPU, the kernel or the hypervisor does not offer it";
      break;
    case EACCES:
      text = "not permitted: root can lower kernel.perf_event_paranoid to 1 or grant CAP_PERFMON";
      break;
    case EPERM:
      text =
          "forbidden: a container's seccomp filter, or the limit of locked memory (ulimit -l, "
          "kernel.perf_event_mlock_kb)";
      break;
    case EBUSY:
      text = "somebody else uses the unit: perf, another debugger or a virtual machine; end that";
      break;
    case ENOSYS:
      text = "this kernel or sandbox has no perf";
      break;
    case EMFILE:
    case ENFILE:
      text = "no file descriptor is left: raise ulimit -n";
      break;
    case ENOMEM:
      text = "no memory for the buffer";
      break;
    case ENODEV:
      text = "the CPU is offline";
      break;
    default:
      break;
  }
  const char* name = ::strerrorname_np(value);
  return fmt::format(
      "{}: {}: {}", error.operation,
      name != nullptr && error.code.category() == std::system_category() ? name : "error", text);
}

}  // namespace backtrail::tracee
