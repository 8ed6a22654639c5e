#pragma once
/// @file
/// One perf event of one thread, with its memory: what can be negotiated is negotiated here.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "arch/base/result.hpp"
#include "ptrace/perf/perf_kernel.hpp"

namespace backtrail::tracee {

/// The event, by its raw number, that AMD's branch sampling of Zen 3 takes alone: retired taken
/// branches (arch/x86/events/amd/brs.c).
inline constexpr std::uint64_t kAmdTakenBranches = 0xc4;

/// How records are kept when nobody reads them.
enum class BufferMode : std::uint8_t {
  kStream,   ///< Nothing is overwritten: what does not fit is lost, and told.
  kHistory,  ///< The oldest are overwritten.
};

struct BufferRequest {
  BufferMode mode = BufferMode::kHistory;
  std::uint64_t data_bytes = 0;  ///< Of the data ring, rounded up to pages, a power of two of them.
  std::uint64_t aux_bytes = 0;   ///< Of the AUX area; 0 = none.
};

/// How long an event was wanted and how long it ran.
struct EventTimes {
  std::uint64_t enabled = 0;
  std::uint64_t running = 0;
  std::optional<std::uint64_t> lost;  ///< Records, ever; not told by kernels before 6.0.
  bool in_error = false;              ///< A pinned event that found its unit taken.
  std::uint64_t slack = 0;            ///< Differences up to this say nothing.

  /// Something ran unseen between the two readings.
  [[nodiscard]] bool unseen_since(const EventTimes& before) const;
};

/// The CPU's own units for branch events, where it has several (cpu_core and cpu_atom of hybrid
/// CPUs): an event of one sees nothing on the other's cores. Empty where there is one.
[[nodiscard]] std::vector<std::uint32_t> core_units(PerfKernel& kernel);

class PerfEvent {
 public:
  /// open() and map(). A branch event gets one event for each kind of core, all of which write into
  /// one ring. In kStream mode the descriptor becomes readable when a quarter of the ring or of the
  /// area waits to be read.
  static Result<PerfEvent> open_mapped(PerfKernel& kernel, const perf_event_attr& wanted, pid_t tid,
                                       const BufferRequest& request);
  /// Opens and retries as the kernel's answers allow: interrupted, a smaller attribute (E2BIG),
  /// without the count of lost records (EINVAL), once more when the unit is busy (EBUSY).
  static Result<PerfEvent> open(PerfKernel& kernel, const perf_event_attr& wanted, pid_t tid);
  PerfEvent(PerfEvent&& other) noexcept;
  PerfEvent& operator=(PerfEvent&&) = delete;
  PerfEvent(const PerfEvent&) = delete;
  PerfEvent& operator=(const PerfEvent&) = delete;
  ~PerfEvent();

  /// Maps the ring and the area. Each is halved until the kernel grants it (EPERM: the locked
  /// memory of all of the user's processes; ENOMEM: no contiguous memory), down to a page, and the
  /// ring once more where it left nothing to the area; what was granted is in data() and aux(). The
  /// last errno when not even that is to be had.
  Result<void> map(const BufferRequest& request);

  [[nodiscard]] PerfKernel& kernel() const { return *kernel_; }
  [[nodiscard]] int fd() const { return fd_; }
  [[nodiscard]] BufferMode mode() const { return mode_; }
  [[nodiscard]] std::span<const std::uint8_t> data() const { return data_; }
  [[nodiscard]] std::span<const std::uint8_t> aux() const { return aux_; }
  /// How much of what the kernel may write waits to be read: of the ring or of the area, whichever
  /// is fuller. 0 where the oldest are overwritten.
  [[nodiscard]] unsigned percent_full() const;
  /// The kernel tells how many records were lost.
  [[nodiscard]] bool counts_lost() const { return counts_lost_; }

  [[nodiscard]] std::uint64_t data_head() const { return kernel_->load(page_->data_head); }
  [[nodiscard]] std::uint64_t aux_head() const { return kernel_->load(page_->aux_head); }
  // Only in kStream mode: the other one is mapped read-only.
  void set_data_tail(std::uint64_t tail);
  void set_aux_tail(std::uint64_t tail);

  Result<void> enable();
  Result<void> disable();
  Result<void> pause_output(bool on);
  [[nodiscard]] Result<EventTimes> times() const;
  /// Nothing will come any more: the thread ended, or exec took its events away.
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
  bool all_cores_ = true;   ///< There is an event for each kind of core.
  std::vector<int> twins_;  ///< The events of other kinds of cores.
  BufferMode mode_ = BufferMode::kHistory;
  perf_event_mmap_page* page_ = nullptr;
  std::span<std::uint8_t> mapping_;
  std::span<std::uint8_t> aux_;
  std::span<const std::uint8_t> data_;
};

/// An event instead of another one.
template <typename Options>
struct Reopened {
  std::optional<PerfEvent> event;  ///< Nothing if neither can be had any more.
  Options options;
  Result<void> said;  ///< Why it is not the one that was wanted.
};
/// Closes `old` and opens one with `wanted`, or else one as `before` again. A unit may have one
/// user only, so there are never two. `open` takes options and returns a Result<PerfEvent>.
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

/// Why the kernel refused to open an event, and who could change that: one line.
[[nodiscard]] std::string explain_perf_error(const Error& error);

}  // namespace backtrail::tracee
