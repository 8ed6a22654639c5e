// SPDX-License-Identifier: Apache-2.0
#include "test/support/simulated_perf.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <numeric>
#include <utility>

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "arch/base/page.hpp"
#include "test/support/ring_writer.hpp"

namespace backtrail::test {
namespace {

using decoder::perf::RecordType;

constexpr std::uint64_t kUnit = 24;

std::span<std::uint8_t> bytes_of(std::vector<std::uint64_t>& words) {
  return {reinterpret_cast<std::uint8_t*>(words.data()), words.size() * 8};  // NOLINT
}

std::vector<std::uint8_t> raw(const Pairs& pairs) {
  std::vector<std::uint8_t> out(pairs.size() * kUnit);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    store_le(out.data() + i * kUnit, pairs[i].first);
    store_le(out.data() + i * kUnit + 8, pairs[i].second);
    store_le(out.data() + i * kUnit + 16, ~std::uint64_t{0} - i);  // The third word has no meaning.
  }
  return out;
}

}  // namespace

std::span<std::uint8_t> SimulatedEvent::ring() {
  return bytes_of(memory).subspan(kPageBytes, data_size);
}
std::span<std::uint8_t> SimulatedEvent::area() {
  return bytes_of(aux);
}

void SimulatedEvent::tick() {
  if (!auto_times || !enabled || in_error) return;
  time_enabled += 1000;
  time_running += 1000;
}

std::uint64_t SimulatedEvent::free_bytes() {
  // One byte stays empty.
  return data_size - (page().data_head - page().data_tail) - 1;
}

bool SimulatedEvent::reserve(std::uint64_t bytes) {
  if (paused) return ++lost_pending_, ++lost_total, false;
  if (overwrite) return true;
  const std::uint64_t told = lost_pending_ != 0 ? 24 : 0;
  if (free_bytes() < bytes + told) return ++lost_pending_, ++lost_total, false;
  return true;
}

void SimulatedEvent::wrote(std::uint64_t ring, std::uint64_t area) {
  const auto passes = [](std::uint64_t& sum, std::uint64_t more, std::uint64_t mark) {
    sum += more;
    return more != 0 && sum > mark && (sum = 0, true);
  };
  const std::uint64_t mark = attr.wakeup_watermark != 0 ? attr.wakeup_watermark : data_size / 2;
  const std::uint64_t aux_mark = attr.aux_watermark != 0 ? attr.aux_watermark : aux_size / 2;
  const bool by_ring = passes(unwoken_, ring, std::min(mark, data_size));
  const bool by_area = passes(aux_unwoken_, area, std::min(aux_mark, aux_size));
  if (!by_ring && !by_area) return;
  readable = true;
  const std::uint64_t one = 1;
  (void)!::write(fd, &one, sizeof one);
}

void SimulatedEvent::put(std::span<const std::uint8_t> record) {
  wrote(record.size(), 0);
  if (attr.write_backward != 0) {
    page().data_head -= record.size();
    put_at(ring(), page().data_head, record);
  } else {
    put_at(ring(), page().data_head, record);
    page().data_head += record.size();
  }
}

void SimulatedEvent::output(std::vector<std::uint8_t> bytes) {
  if (!enabled || in_error) return;
  if (!reserve(bytes.size())) return;
  if (lost_pending_ != 0) {
    std::vector<std::uint64_t> body{99, lost_pending_};  // The id of another event.
    if (attr.sample_id_all != 0) body.push_back(1);
    const auto told = perf_record(RecordType::kLost, 0, body);
    bytes.insert(bytes.begin(), told.begin(), told.end());
    lost_pending_ = 0;
  }
  put(bytes);
}

void SimulatedEvent::write(RecordType type, std::uint16_t misc,
                           const std::vector<std::uint64_t>& words) {
  if (dead) return;
  tick();
  output(perf_record(type, misc, words));
}

std::vector<std::uint8_t> SimulatedEvent::sample_bytes(std::uint64_t from, std::uint64_t to) const {
  std::vector<std::uint64_t> words{from};
  if ((attr.sample_type & PERF_SAMPLE_TIME) != 0) words.push_back(time_enabled);
  words.push_back(to);
  return perf_record(RecordType::kSample, 1, words);
}

void SimulatedEvent::sample(std::uint64_t from, std::uint64_t to) {
  batch({{from, to}});
}

void SimulatedEvent::batch(const Pairs& pairs) {
  if (dead) return;
  std::vector<std::uint8_t> bytes;
  constexpr std::size_t kLargestSample = 32;
  bytes.reserve(pairs.size() * kLargestSample);
  tick();
  for (const auto& [from, to] : pairs) {
    if (((from | to) >> 63U) != 0) continue;
    const auto record = sample_bytes(from, to);
    bytes.insert(bytes.end(), record.begin(), record.end());
  }
  if (!bytes.empty()) output(std::move(bytes));
}

void SimulatedEvent::claim_size(std::uint64_t position, std::uint16_t bytes) {
  store_le(ring().data() + position % data_size + 6, bytes);
}

void SimulatedEvent::switched(bool departs, std::uint64_t time, bool preempted) {
  const auto misc = static_cast<std::uint16_t>((departs ? decoder::perf::kMiscSwitchOut : 0) |
                                               (preempted ? decoder::perf::kMiscSwitchPreempt : 0));
  std::vector<std::uint64_t> words;
  if ((attr.sample_type & PERF_SAMPLE_TID) != 0) words.push_back(0);
  if ((attr.sample_type & PERF_SAMPLE_TIME) != 0) words.push_back(time);
  if ((attr.sample_type & PERF_SAMPLE_CPU) != 0) words.push_back(3);
  write(RecordType::kSwitch, misc, words);
}

void SimulatedEvent::aux_pairs(const Pairs& pairs, std::uint64_t flags) {
  aux_bytes(raw(pairs), flags);
}

void SimulatedEvent::aux_bytes(const std::vector<std::uint8_t>& bytes, std::uint64_t flags) {
  if (!enabled || dead || in_error) return;
  const std::uint64_t offset = page().aux_head;
  const std::uint64_t room = aux_size - (offset - page().aux_tail);
  std::uint64_t size = bytes.size();
  if (size > room) {
    size = room / kUnit * kUnit;
    flags |= decoder::perf::kAuxTruncated;
  }
  put_at(area(), offset, std::span{bytes}.first(size));
  if (aux_records_fail) {
    tick();
    ++lost_pending_;
    ++lost_total;
  } else {
    write(RecordType::kAux, 0, {offset, size, flags});
  }
  page().aux_head = offset + size;
  wrote(0, size);
  if ((flags & decoder::perf::kAuxTruncated) != 0) enabled = false;
}

void SimulatedEvent::aux_padding(std::uint64_t bytes, const std::vector<std::uint8_t>& fill) {
  std::vector<std::uint8_t> content(bytes, 0);
  std::copy_n(fill.begin(), std::min<std::size_t>(fill.size(), content.size()), content.begin());
  put_at(area(), page().aux_head, content);
  page().aux_head += bytes;
}

void SimulatedEvent::snapshot_pairs(const Pairs& pairs) {
  const auto bytes = raw(pairs);
  const std::uint64_t grid = aux_size / kUnit * kUnit;
  if (!enabled || in_error) return;
  tick();
  for (std::size_t i = 0; i < bytes.size(); i += kUnit) {
    put_at(area(), page().aux_head, std::span{bytes}.subspan(i, kUnit));
    page().aux_head = (page().aux_head + kUnit) % grid;
  }
}

void SimulatedEvent::snapshot_bytes(const std::vector<std::uint8_t>& bytes) {
  if (!enabled || in_error) return;
  tick();
  put_at(area(), page().aux_head, bytes);
  page().aux_head = (page().aux_head + bytes.size()) % aux_size;
}

Result<int> SimulatedPerf::open(perf_event_attr& attributes, pid_t tid) {
  opened.push_back(attributes);
  const auto refuse = [&](int value) {
    return fail(errno_error(value, "perf_event_open", static_cast<std::uint64_t>(tid)));
  };
  if (attribute_size != 0 && attributes.size > attribute_size) {
    attributes.size = attribute_size;
    return refuse(E2BIG);
  }
  if (!open_errors.empty()) {
    const int value = open_errors.front();
    open_errors.erase(open_errors.begin());
    if (value != 0) return refuse(value);
  } else if (open_rule) {
    if (const int value = open_rule(attributes); value != 0) return refuse(value);
  }
  auto event = std::make_unique<SimulatedEvent>(attributes);
  event->enabled = attributes.disabled == 0;
  event->tid = tid;
  constexpr int kNoDescriptor = 1'000'000;
  event->fd = waitable ? ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)
                       : kNoDescriptor + static_cast<int>(opened_events_);
  const int fd = event->fd;
  events_.emplace(opened_events_++, std::move(event));
  return fd;
}

void SimulatedPerf::close(int fd) {
  const auto found = events_.find(order_of(fd));
  closed_.push_back(std::move(found->second));
  events_.erase(found);
  if (waitable) ::close(fd);
  if (mapped_.empty()) closed_.clear();
}

SimulatedPerf::~SimulatedPerf() {
  for (const auto& [order, event] : events_) {
    if (waitable) ::close(event->fd);
  }
}

std::uint64_t SimulatedPerf::order_of(int fd) const {
  const auto found = std::find_if(events_.begin(), events_.end(),
                                  [&](const auto& entry) { return entry.second->fd == fd; });
  return found == events_.end() ? ~std::uint64_t{0} : found->first;
}

Result<std::uint8_t*> SimulatedPerf::map(int fd, std::size_t bytes, bool writable,
                                         std::uint64_t offset) {
  const auto refuse = [&](int value) {
    return fail(errno_error(value, "mmap of a perf event", bytes));
  };
  SimulatedEvent& event = by_fd(fd);
  if (const int value = refuses(bytes); value != 0) return refuse(value);
  if (event.attr.inherit != 0)
    return refuse(EINVAL);  // Inherited events of any CPU cannot be mapped.
  if (offset == 0) {
    if (bytes > largest_ring) return refuse(EPERM);
    event.memory.assign(bytes / 8, 0);
    event.data_size = bytes - kPageBytes;
    event.overwrite = !writable;
    event.page().data_head = event.page().data_tail = first_position;
    std::uint8_t* begin = bytes_of(event.memory).data();
    mapped_[begin] = bytes;
    return begin;
  }
  if (event.page().aux_offset != offset || event.page().aux_size != bytes) return refuse(EINVAL);
  if (bytes > largest_area) return refuse(area_errno);
  event.aux.assign(bytes / 8, 0);
  event.aux_size = bytes;
  event.snapshot = !writable;
  std::uint8_t* begin = bytes_of(event.aux).data();
  mapped_[begin] = bytes;
  return begin;
}

int SimulatedPerf::refuses(std::uint64_t bytes) const {
  if (map_errno != 0) return map_errno;
  return locked_budget && locked() + bytes > *locked_budget ? EPERM : 0;
}

std::uint64_t SimulatedPerf::locked() const {
  return std::accumulate(
      mapped_.begin(), mapped_.end(), std::uint64_t{0},
      [](std::uint64_t sum, const auto& mapping) { return sum + mapping.second; });
}

void SimulatedPerf::unmap(std::uint8_t* memory, std::size_t bytes) {
  const auto found = mapped_.find(memory);
  // The kernel refuses to unmap a part.
  if (found != mapped_.end() && found->second == bytes) mapped_.erase(found);
}

/// Applies the kernel's rules for sharing a ring between events of any CPU.
bool SimulatedPerf::may_share(const SimulatedEvent& event, const SimulatedEvent& target) {
  const perf_event_attr& a = event.attr;
  const perf_event_attr& b = target.attr;
  return &event != &target && event.memory.empty() && !target.memory.empty() &&
         event.tid == target.tid && a.write_backward == b.write_backward &&
         a.use_clockid == b.use_clockid && a.clockid == b.clockid;
}

Result<void> SimulatedPerf::control(int fd, unsigned long request, std::uint64_t argument) {
  SimulatedEvent& event = by_fd(fd);
  if (control_rule) {
    const int value = control_rule(event, request, argument);
    if (value != 0) return fail(errno_error(value, "ioctl of a perf event", request));
  }
  if (request == PERF_EVENT_IOC_ENABLE) {
    event.enabled = true;
    event.in_error = false;
    ++event.enables;
  } else if (request == PERF_EVENT_IOC_DISABLE) {
    if (on_disable) on_disable(event);
    event.enabled = false;
  } else if (request == PERF_EVENT_IOC_PAUSE_OUTPUT) {
    if (!pause_works || event.memory.empty())
      return fail(errno_error(EINVAL, "ioctl of a perf event"));
    event.paused = argument != 0;
  } else if (request == PERF_EVENT_IOC_SET_OUTPUT) {
    if (!shared_rings_work || !may_share(event, by_fd(static_cast<int>(argument))))
      return fail(errno_error(EINVAL, "ioctl of a perf event"));
    event.output_of = static_cast<int>(argument);
  }
  return {};
}

Result<std::size_t> SimulatedPerf::read(int fd, std::span<std::uint64_t> out) {
  const SimulatedEvent& event = by_fd(fd);
  if (read_errno != 0) return fail(errno_error(read_errno, "read of a perf event"));
  if (event.in_error) return std::size_t{0};
  const std::array<std::uint64_t, 4> words{0, event.time_enabled, event.time_running,
                                           event.lost_total};
  const std::size_t count = std::min(out.size(), read_words);
  std::copy_n(words.begin(), count, out.begin());
  return count;
}

Result<short> SimulatedPerf::poll(int fd) {
  SimulatedEvent& event = by_fd(fd);
  if (!poll_errors.empty()) {
    const int value = poll_errors.front();
    poll_errors.erase(poll_errors.begin());
    return fail(errno_error(value, "poll of a perf event"));
  }
  if (event.memory.empty() || event.dead) return static_cast<short>(POLLHUP);
  if (event.in_error) return static_cast<short>(POLLERR);  // Linux 6.15
  // POLLIN is reported once.
  std::uint64_t count = 0;
  (void)!::read(fd, &count, sizeof count);
  return std::exchange(event.readable, false) ? static_cast<short>(POLLIN) : short{0};
}

std::uint64_t SimulatedPerf::load(const __u64& position) {
  if (on_load) on_load();
  return position;
}

void SimulatedPerf::store(__u64& position, std::uint64_t value) {
  position = value;
}

std::optional<std::string> SimulatedPerf::device_file(std::string_view path) {
  const auto found = devices.find(path);
  if (found == devices.end()) return std::nullopt;
  return found->second;
}

}  // namespace backtrail::test
