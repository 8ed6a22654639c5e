// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The kernel side of perf, in memory only. It misbehaves on demand, as real kernels do.

#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "decoder/perf/perf_abi.hpp"
#include "ptrace/perf/perf_kernel.hpp"

namespace backtrail::test {

using Pairs = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

/// An event. Records are written as by the kernel: as a whole or not at all. Losses are counted and
/// reported before the next record that fits.
class SimulatedEvent {
 public:
  explicit SimulatedEvent(const perf_event_attr& attributes) : attr{attributes} {}

  void write(decoder::perf::RecordType type, std::uint16_t misc,
             const std::vector<std::uint64_t>& words);
  void sample(std::uint64_t from, std::uint64_t to);
  /// Empties the CPU's BTS buffer once: one reservation for all pairs, filled upwards in either
  /// direction of the ring. Pairs with a kernel end are left out.
  void batch(const Pairs& pairs);
  /// Sets the size in the header of the record at that position of the ring.
  void claim_size(std::uint64_t position, std::uint16_t bytes);
  /// Writes a context switch; its trailer has the fields of sample_id_all.
  void switched(bool departs, std::uint64_t time, bool preempted = false);
  /// Writes BTS records or any bytes into the AUX area, with their AUX record. Stops at the end of
  /// the room as hardware does: TRUNCATED, and the event is disabled.
  void aux_pairs(const Pairs& pairs, std::uint64_t flags = 0);
  void aux_bytes(const std::vector<std::uint8_t>& bytes, std::uint64_t flags = 0);
  /// Moves the area's head over bytes without a record; the bytes are `fill`.
  void aux_padding(std::uint64_t bytes, const std::vector<std::uint8_t>& fill = {});
  /// Snapshot mode: writes, and wraps at record boundaries; the head is an offset.
  void snapshot_pairs(const Pairs& pairs);
  void snapshot_bytes(const std::vector<std::uint8_t>& bytes);

  [[nodiscard]] perf_event_mmap_page& page() {
    return *reinterpret_cast<perf_event_mmap_page*>(memory.data());  // NOLINT
  }
  [[nodiscard]] std::uint64_t ring_bytes() const { return data_size; }
  [[nodiscard]] std::uint64_t free_bytes();

  perf_event_attr attr;
  std::vector<std::uint64_t> memory;  ///< Header page and ring.
  std::vector<std::uint64_t> aux;
  std::uint64_t data_size = 0;
  std::uint64_t aux_size = 0;
  bool overwrite = false;  ///< The ring is mapped read-only.
  bool snapshot = false;   ///< The AUX area is mapped read-only.
  bool enabled = false;
  bool dead = false;
  bool in_error = false;
  bool paused = false;
  bool readable = false;          ///< POLLIN until the next poll.
  std::optional<int> output_of;   ///< The event whose ring receives this event's records.
  bool aux_records_fail = false;  ///< The ring has no room for AUX records.
  bool auto_times = true;         ///< time_enabled and time_running increase with every write.
  std::uint64_t time_enabled = 0;
  std::uint64_t time_running = 0;
  std::uint64_t lost_total = 0;
  std::uint64_t enables = 0;
  pid_t tid = 0;
  int fd = -1;  ///< A real descriptor, so that it can be waited for.

 private:
  void put(std::span<const std::uint8_t> record);
  /// Writes one reservation, after a report of earlier losses.
  void output(std::vector<std::uint8_t> bytes);
  [[nodiscard]] std::vector<std::uint8_t> sample_bytes(std::uint64_t from, std::uint64_t to) const;
  bool reserve(std::uint64_t bytes);
  void tick();
  [[nodiscard]] std::span<std::uint8_t> ring();
  [[nodiscard]] std::span<std::uint8_t> area();
  /// Wakes pollers if a watermark is reached.
  void wrote(std::uint64_t ring, std::uint64_t area);

  std::uint64_t lost_pending_ = 0;
  std::uint64_t unwoken_ = 0;  ///< Bytes of the ring since the last wakeup.
  std::uint64_t aux_unwoken_ = 0;
};

class SimulatedPerf : public tracee::PerfKernel {
 public:
  Result<int> open(perf_event_attr& attributes, pid_t tid) override;
  void close(int fd) override;
  Result<std::uint8_t*> map(int fd, std::size_t bytes, bool writable,
                            std::uint64_t offset) override;
  void unmap(std::uint8_t* memory, std::size_t bytes) override;
  Result<void> control(int fd, unsigned long request, std::uint64_t argument) override;
  Result<std::size_t> read(int fd, std::span<std::uint64_t> out) override;
  Result<short> poll(int fd) override;
  std::uint64_t load(const __u64& position) override;
  void store(__u64& position, std::uint64_t value) override;
  std::optional<std::uint64_t> locked_limit() override { return locked_budget; }
  std::optional<std::string> device_file(std::string_view path) override;

  ~SimulatedPerf() override;

  /// Returns an open event; index in order of opening.
  [[nodiscard]] SimulatedEvent& event(std::size_t index) {
    return *std::next(events_.begin(), static_cast<std::ptrdiff_t>(index))->second;
  }
  /// Returns the event opened last.
  [[nodiscard]] SimulatedEvent& last() { return *events_.rbegin()->second; }
  [[nodiscard]] SimulatedEvent& by_fd(int fd) { return *events_.at(order_of(fd)); }
  [[nodiscard]] std::size_t open_events() const { return events_.size(); }
  /// Returns the number of mapped bytes.
  [[nodiscard]] std::uint64_t locked() const;

  std::map<std::string, std::string, std::less<>> devices;
  /// Errnos of the next calls of open; 0 to let it through to `open_rule`.
  std::vector<int> open_errors;
  /// Returns the errno for an attribute; 0 to open it.
  std::function<int(const perf_event_attr&)> open_rule;
  std::uint32_t attribute_size = 0;    ///< Larger attributes fail with E2BIG; 0 for any size.
  std::uint64_t largest_ring = ~0ULL;  ///< Bytes of a mapping; more fails with EPERM.
  std::uint64_t largest_area = ~0ULL;  ///< Bytes of an AUX area; more fails with `area_errno`.
  int area_errno = 0;
  int map_errno = 0;  ///< Errno of every map; 0 to succeed.
  bool pause_works = true;
  bool shared_rings_work = true;
  /// Returns the errno of an ioctl; 0 to succeed.
  std::function<int(SimulatedEvent& event, unsigned long request, std::uint64_t argument)>
      control_rule;
  int read_errno = 0;            ///< Errno of every read; 0 to succeed.
  std::size_t read_words = 4;    ///< Most words that a read returns.
  std::vector<int> poll_errors;  ///< Errnos of the next calls of poll.
  /// Most bytes that all mappings of the user may take together; more fails with EPERM.
  std::optional<std::uint64_t> locked_budget;
  bool waitable = true;              ///< Descriptors are real ones.
  std::uint64_t first_position = 0;  ///< Position at which rings and areas begin.
  /// Called before every load, because the kernel writes while the reader reads.
  std::function<void()> on_load;
  /// Called before an event is disabled, to write what arrived meanwhile.
  std::function<void(SimulatedEvent&)> on_disable;
  std::vector<perf_event_attr> opened;  ///< The attributes of all opens, in order.

 private:
  [[nodiscard]] std::uint64_t order_of(int fd) const;
  [[nodiscard]] static bool may_share(const SimulatedEvent& event, const SimulatedEvent& target);
  /// Returns the errno of mmap for that number of additional bytes; 0 to succeed.
  [[nodiscard]] int refuses(std::uint64_t bytes) const;

  std::uint64_t opened_events_ = 0;
  std::map<std::uint64_t, std::unique_ptr<SimulatedEvent>> events_;  ///< By order of opening.
  std::map<const std::uint8_t*, std::uint64_t> mapped_;
  /// Closed events; a mapping keeps its event alive.
  std::vector<std::unique_ptr<SimulatedEvent>> closed_;
};

}  // namespace backtrail::test
