// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// One perf event of one thread, and its buffers. Negotiates with the kernel where it can.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "arch/base/result.hpp"
#include "ptrace/perf/perf_kernel.hpp"

namespace backtrail::tracee {

/// Raw number of the only event that AMD's branch sampling on Zen 3 accepts: retired taken branches
/// (arch/x86/events/amd/brs.c).
inline constexpr std::uint64_t kAmdTakenBranches = 0xc4;

/// Determines what happens to records that are not read in time.
enum class BufferMode : std::uint8_t {
  kStream,   ///< No record is overwritten; records that do not fit are lost and counted.
  kHistory,  ///< The oldest records are overwritten.
};

struct BufferRequest {
  BufferMode mode = BufferMode::kHistory;
  std::uint64_t data_bytes = 0;  ///< Size of the data ring; rounded up to a power of two of pages.
  std::uint64_t aux_bytes = 0;   ///< Size of the AUX area; 0 = none.
};

/// Times of an event, in nanoseconds: how long it was enabled and how long it counted.
struct EventTimes {
  std::uint64_t enabled = 0;
  std::uint64_t running = 0;
  std::optional<std::uint64_t> lost;  ///< Lost records so far; nullopt on kernels before 6.0.
  bool in_error = false;              ///< A pinned event could not get its unit.
  std::uint64_t slack = 0;  ///< Tolerance in nanoseconds: smaller differences mean nothing.

  /// Returns true if the event did not count for some of the time since `before`.
  [[nodiscard]] bool unseen_since(const EventTimes& before) const;
};

/// Returns the PMU types of the CPU's units for branch events if it has several (cpu_core and
/// cpu_atom of hybrid CPUs). An event of one unit sees nothing on the cores of another. Empty if
/// there is only one.
[[nodiscard]] std::vector<std::uint32_t> core_units(PerfKernel& kernel);

class PerfEvent {
 public:
  /// Opens and maps an event: open() and map(). A branch event becomes one event for each kind of
  /// core; all of them write to one ring. In kStream mode the descriptor becomes readable when a
  /// quarter of the ring or of the area waits to be read.
  static Result<PerfEvent> open_mapped(PerfKernel& kernel, const perf_event_attr& wanted, pid_t tid,
                                       const BufferRequest& request);
  /// Opens an event, and retries as the kernel's errors allow: after an interruption (EINTR), with
  /// a smaller attribute (E2BIG), without the count of lost records (EINVAL), and once if the unit
  /// is busy (EBUSY).
  static Result<PerfEvent> open(PerfKernel& kernel, const perf_event_attr& wanted, pid_t tid);
  PerfEvent(PerfEvent&& other) noexcept;
  PerfEvent& operator=(PerfEvent&&) = delete;
  PerfEvent(const PerfEvent&) = delete;
  PerfEvent& operator=(const PerfEvent&) = delete;
  ~PerfEvent();

  /// Maps the ring and the area. Each is halved until the kernel grants it (EPERM: limit on locked
  /// memory of all the user's processes; ENOMEM: no contiguous memory), down to one page. If the
  /// ring leaves nothing for the area, the ring is halved too. data() and aux() show the granted
  /// sizes. Errors: the last errno if not even a page is granted.
  Result<void> map(const BufferRequest& request);

  [[nodiscard]] PerfKernel& kernel() const { return *kernel_; }
  [[nodiscard]] int fd() const { return fd_; }
  [[nodiscard]] BufferMode mode() const { return mode_; }
  [[nodiscard]] std::span<const std::uint8_t> data() const { return data_; }
  [[nodiscard]] std::span<const std::uint8_t> aux() const { return aux_; }
  /// Returns how full the ring or the area is, in percent; the fuller one counts. 0 in kHistory
  /// mode.
  [[nodiscard]] unsigned percent_full() const;
  /// Returns true if the kernel counts lost records.
  [[nodiscard]] bool counts_lost() const { return counts_lost_; }

  [[nodiscard]] std::uint64_t data_head() const { return kernel_->load(page_->data_head); }
  [[nodiscard]] std::uint64_t aux_head() const { return kernel_->load(page_->aux_head); }
  // Call the next two in kStream mode only: in kHistory mode the pages are mapped read-only.
  void set_data_tail(std::uint64_t tail);
  void set_aux_tail(std::uint64_t tail);

  Result<void> enable();
  Result<void> disable();
  Result<void> pause_output(bool on);
  [[nodiscard]] Result<EventTimes> times() const;
  /// Returns true if no record can come any more: the thread ended, or an exec removed the event.
  [[nodiscard]] bool dead() const;

 private:
  PerfEvent(PerfKernel& kernel, int fd, bool counts_lost)
      : kernel_{&kernel}, fd_{fd}, counts_lost_{counts_lost} {}
  static Result<PerfEvent> open_on_all_cores(PerfKernel& kernel, const perf_event_attr& wanted,
                                             pid_t tid);
  void share_ring();
  Result<void> control_all(unsigned long request, std::uint64_t argument);
  [[nodiscard]] Result<EventTimes> times_of(int fd) const;
  Result<void> map_data(std::uint64_t bytes, bool writable);
  void unmap_data();
  Result<void> map_aux(std::uint64_t bytes, bool writable);

  PerfKernel* kernel_;
  int fd_;
  bool counts_lost_;
  bool all_cores_ = true;   ///< An event was opened for each kind of core.
  std::vector<int> twins_;  ///< Descriptors of the events for other kinds of cores.
  BufferMode mode_ = BufferMode::kHistory;
  perf_event_mmap_page* page_ = nullptr;
  std::span<std::uint8_t> mapping_;
  std::span<std::uint8_t> aux_;
  std::span<const std::uint8_t> data_;
};

/// The result of reopen().
template <typename Options>
struct Reopened {
  std::optional<PerfEvent> event;  ///< nullopt if neither event can be opened.
  Options options;
  Result<void> said;  ///< Error that kept the wanted event from being opened, if any.
};
/// Closes `old` and opens an event with `wanted`, or one with `before` if that fails. Two events
/// never exist at once, because a unit may allow only one user. `open` takes options and returns a
/// Result<PerfEvent>.
template <typename Options, typename Open>
Reopened<Options> reopen(std::optional<PerfEvent>& old, const Options& before,
                         const Options& wanted, const Open& open) {
  old.reset();
  Reopened<Options> out{{}, wanted, {}};
  if (auto event = open(wanted)) {
    out.event.emplace(std::move(*event));
    return out;
  } else {
    out.said = fail(event.error());
  }
  out.options = before;
  if (auto event = open(before)) out.event.emplace(std::move(*event));
  return out;
}

/// Returns one line for the user: why the kernel refused to open an event, and how to change that.
[[nodiscard]] std::string explain_perf_error(const Error& error);

}  // namespace backtrail::tracee
