// SPDX-License-Identifier: Apache-2.0
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
#include "arch/base/page.hpp"

namespace backtrail::tracee {
namespace {

/// PERF_FORMAT_LOST, Linux 6.0.
constexpr std::uint64_t kFormatLost = 1U << 4U;
constexpr std::uint64_t kFormat = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;

/// Shift of the unit's PMU type in the config of a generic event. Source: <linux/perf_event.h>.
constexpr unsigned kUnitShift = 32;
/// Tolerance between times that were not read at one moment, in nanoseconds.
constexpr std::uint64_t kSlack = 100'000;

std::uint64_t whole_pages(std::uint64_t bytes) {
  return std::bit_ceil(std::max<std::uint64_t>((bytes + kPageBytes - 1) / kPageBytes, 1)) *
         kPageBytes;
}

/// Returns the number of waiting bytes that wakes the server: a quarter, so that the rest has room
/// for records that arrive meanwhile.
std::uint32_t watermark(std::uint64_t bytes) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 30U;
  return static_cast<std::uint32_t>(std::min(whole_pages(bytes) / 4, kMost));
}

/// Returns true if the kernel may grant a smaller buffer.
bool may_shrink(const Error& error) {
  return error.code.value() == EPERM || error.code.value() == ENOMEM;
}

/// Maps the wanted bytes in whole pages, halving them until granted, down to one page.
template <typename Map>
Result<void> halved_until_granted(std::uint64_t wanted_bytes, const Map& map) {
  for (std::uint64_t bytes = whole_pages(wanted_bytes);; bytes /= 2) {
    auto mapped = map(bytes);
    if (mapped || !may_shrink(mapped.error()) || bytes == kPageBytes) return mapped;
  }
}

/// Returns true if the attribute is zero after its first `size` bytes, so that cutting it there
/// loses nothing.
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

std::vector<std::uint32_t> core_units(PerfKernel& kernel) {
  std::vector<std::uint32_t> out;
  for (const char* name : {"cpu_core", "cpu_atom", "cpu_lowpower"}) {
    if (const auto type = pmu_type(kernel, name)) out.push_back(*type);
  }
  return out;
}

Result<PerfEvent> PerfEvent::open_on_all_cores(PerfKernel& kernel, const perf_event_attr& wanted,
                                               pid_t tid) {
  const std::vector<std::uint32_t> units =
      wanted.type == PERF_TYPE_HARDWARE ? core_units(kernel) : std::vector<std::uint32_t>{};
  if (units.empty()) return open(kernel, wanted, tid);
  std::optional<PerfEvent> out;
  Error refused;
  bool all = true;
  for (const std::uint32_t unit : units) {
    perf_event_attr attributes = wanted;
    attributes.config |= std::uint64_t{unit} << kUnitShift;
    auto event = open(kernel, attributes, tid);
    if (!event) {
      refused = event.error();
      all = false;
    } else if (!out) {
      out.emplace(std::move(*event));
    } else {
      out->twins_.push_back(std::exchange(event->fd_, -1));
      out->counts_lost_ = out->counts_lost_ && event->counts_lost_;
    }
  }
  if (!out) return fail(refused);
  out->all_cores_ = all;
  return std::move(*out);
}

Result<PerfEvent> PerfEvent::open_mapped(PerfKernel& kernel, const perf_event_attr& wanted,
                                         pid_t tid, const BufferRequest& request) {
  BufferRequest asked = request;
  for (bool again = false;; again = true) {
    perf_event_attr attributes = wanted;
    if (request.mode == BufferMode::kStream) {
      attributes.watermark = 1;
      attributes.wakeup_watermark = watermark(asked.data_bytes);
      attributes.aux_watermark = asked.aux_bytes == 0 ? 0 : watermark(asked.aux_bytes);
    }
    BT_TRY(PerfEvent event, open_on_all_cores(kernel, attributes, tid));
    BT_CHECKED(event.map(asked));
    event.share_ring();
    // The kernel may have granted a buffer smaller than the watermark allows for.
    const bool smaller = event.data_.size() < whole_pages(asked.data_bytes) ||
                         (asked.aux_bytes != 0 && event.aux_.size() < whole_pages(asked.aux_bytes));
    if (request.mode == BufferMode::kHistory || !smaller || again) return event;
    asked.data_bytes = event.data_.size();
    asked.aux_bytes = event.aux_.size();
  }
}

/// If a ring cannot be shared, its kind of core goes unseen; the times show that.
void PerfEvent::share_ring() {
  const auto refused = [this](int twin) {
    if (kernel_->control(twin, PERF_EVENT_IOC_SET_OUTPUT, static_cast<unsigned>(fd_))) return false;
    kernel_->close(twin);
    all_cores_ = false;
    return true;
  };
  twins_.erase(std::remove_if(twins_.begin(), twins_.end(), refused), twins_.end());
}

PerfEvent::PerfEvent(PerfEvent&& other) noexcept
    : kernel_{other.kernel_},
      fd_{std::exchange(other.fd_, -1)},
      counts_lost_{other.counts_lost_},
      all_cores_{other.all_cores_},
      twins_{std::exchange(other.twins_, {})},
      mode_{other.mode_},
      page_{std::exchange(other.page_, nullptr)},
      mapping_{std::exchange(other.mapping_, {})},
      aux_{std::exchange(other.aux_, {})},
      data_{std::exchange(other.data_, {})} {}

PerfEvent::~PerfEvent() {
  if (!aux_.empty()) kernel_->unmap(aux_.data(), aux_.size());
  if (!mapping_.empty()) kernel_->unmap(mapping_.data(), mapping_.size());
  for (const int twin : twins_) kernel_->close(twin);
  if (fd_ >= 0) kernel_->close(fd_);
}

Result<void> PerfEvent::map_data(std::uint64_t bytes, bool writable) {
  BT_TRY(std::uint8_t * memory, kernel_->map(fd_, bytes + kPageBytes, writable, 0));
  mapping_ = {memory, bytes + kPageBytes};
  page_ = reinterpret_cast<perf_event_mmap_page*>(memory);  // NOLINT: what the kernel puts there
  data_ = mapping_.subspan(kPageBytes);
  return {};
}

void PerfEvent::unmap_data() {
  kernel_->unmap(mapping_.data(), mapping_.size());
  mapping_ = {};
  page_ = nullptr;
  data_ = {};
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
  // With an AUX area the ring holds only AUX records, and the ring's header page must be writable
  // in either mode, because it tells the kernel where the area lies.
  const bool writable = stream || request.aux_bytes != 0;
  return halved_until_granted(request.data_bytes, [&](std::uint64_t ring_bytes) -> Result<void> {
    BT_CHECKED(map_data(ring_bytes, writable));
    if (request.aux_bytes == 0) return {};
    auto mapped = halved_until_granted(
        request.aux_bytes, [&](std::uint64_t area_bytes) { return map_aux(area_bytes, stream); });
    // A ring that left no memory for the area is too large.
    if (!mapped) unmap_data();
    return mapped;
  });
}

void PerfEvent::set_data_tail(std::uint64_t tail) {
  kernel_->store(page_->data_tail, tail);
}

void PerfEvent::set_aux_tail(std::uint64_t tail) {
  // A tail beyond the head makes the kernel end the event.
  BT_CHECK(static_cast<std::int64_t>(aux_head() - tail) >= 0);
  kernel_->store(page_->aux_tail, tail);
}

unsigned PerfEvent::percent_full() const {
  if (mode_ == BufferMode::kHistory) return 0;
  constexpr std::uint64_t kAll = 100;
  const auto part = [](std::uint64_t waits, std::uint64_t size) {
    return static_cast<unsigned>(std::min(waits, size) * kAll / size);
  };
  const unsigned ring = part(data_head() - page_->data_tail, data_.size());
  if (aux_.empty()) return ring;
  return std::max(ring, part(aux_head() - page_->aux_tail, aux_.size()));
}

Result<void> PerfEvent::control_all(unsigned long request, std::uint64_t argument) {
  Result<void> out = kernel_->control(fd_, request, argument);
  for (const int twin : twins_) {
    const auto one = kernel_->control(twin, request, argument);
    if (out) out = one;
  }
  return out;
}
Result<void> PerfEvent::enable() {
  return control_all(PERF_EVENT_IOC_ENABLE, 0);
}
Result<void> PerfEvent::disable() {
  return control_all(PERF_EVENT_IOC_DISABLE, 0);
}
Result<void> PerfEvent::pause_output(bool on) {
  return kernel_->control(fd_, PERF_EVENT_IOC_PAUSE_OUTPUT, on ? 1 : 0);
}

bool EventTimes::unseen_since(const EventTimes& before) const {
  const std::uint64_t wanted = enabled - before.enabled;
  const std::uint64_t ran = running - before.running;
  return slack == 0 ? wanted != ran : wanted > ran + slack;
}

Result<EventTimes> PerfEvent::times() const {
  BT_TRY(EventTimes out, times_of(fd_));
  for (const int twin : twins_) {
    BT_TRY(const EventTimes other, times_of(twin));
    out.running += other.running;
    out.in_error = out.in_error || other.in_error;
    if (out.lost && other.lost) *out.lost += *other.lost;
  }
  // The times of several events, of which one runs at a time, are not read at one moment.
  if (!twins_.empty() && all_cores_) out.slack = kSlack;
  return out;
}

Result<EventTimes> PerfEvent::times_of(int fd) const {
  std::array<std::uint64_t, 4> words{};
  BT_TRY(const std::size_t count, kernel_->read(fd, std::span{words}.first(counts_lost_ ? 4 : 3)));
  // A read of a live event returns everything; an event in error returns 0 bytes.
  if (count != 0 && count < 3) return fail(errno_error(EIO, "read of a perf event"));
  EventTimes out;
  out.in_error = count == 0;
  out.enabled = words[1];
  out.running = words[2];
  if (counts_lost_ && count == words.size()) out.lost = words[3];
  return out;
}

bool PerfEvent::dead() const {
  // An interrupted poll says nothing.
  constexpr int kAttempts = 16;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const auto events = kernel_->poll(fd_);
    if (events) return (*events & POLLHUP) != 0;
    if (events.error().code.value() != EINTR) break;
  }
  return true;
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
      text = "the unit is in use by perf, another debugger or a virtual machine; end that";
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
