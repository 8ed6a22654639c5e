// SPDX-License-Identifier: Apache-2.0
#include "ptrace/perf/bts_trial.hpp"

#include "decoder/perf/data_ring.hpp"
#include "decoder/perf/perf_record.hpp"
#include "ptrace/perf/bts_recorder.hpp"
#include "ptrace/perf/perf_event.hpp"

// The loop is in assembly so that its jump has a symbol.
asm(R"(
    .pushsection .text
    .type bt_known_loop, @function
bt_known_loop:
    dec %rdi
bt_known_loop_jump:
    jnz bt_known_loop
    ret
    .size bt_known_loop, . - bt_known_loop
    .popsection
)");

extern "C" {
void bt_known_loop(std::uint64_t count);  // NOLINT(readability-identifier-naming)
void bt_known_loop_jump();                // NOLINT(readability-identifier-naming)
}

namespace backtrail::tracee {
namespace {

namespace perf = decoder::perf;

constexpr std::uint64_t kTurns = 1000;
constexpr std::uint64_t kRingBytes = 32UL * 4096;
/// The pid by which perf_event_open(2) means the calling thread.
constexpr pid_t kThisThread = 0;

TraceeAddr address_of(void (*function)()) {
  return TraceeAddr{reinterpret_cast<std::uintptr_t>(function)};  // NOLINT: what it is about
}

}  // namespace

KnownLoop known_loop() {
  // NOLINTNEXTLINE: its address only
  const auto begin = TraceeAddr{reinterpret_cast<std::uintptr_t>(&bt_known_loop)};
  return {address_of(&bt_known_loop_jump), begin, kTurns};
}

BtsTrial try_bts(PerfKernel& kernel) {
  const perf_event_attr attributes = bts_ring_attributes({.mode = BufferMode::kStream});
  auto event =
      PerfEvent::open_mapped(kernel, attributes, kThisThread, {BufferMode::kStream, kRingBytes, 0});
  if (!event || !event->enable()) return BtsTrial::kRefused;
  bt_known_loop(kTurns + 1);
  // The kernel empties the CPU's buffer when it disables the event.
  (void)event->disable();
  const KnownLoop loop = known_loop();
  std::uint64_t seen = 0;
  const perf::SampleLayout layout{attributes.sample_type, false, 0};
  perf::DataRing ring{event->data()};
  (void)ring.visit(0, event->data_head(), [&](const perf::RecordView& view) {
    const auto pair = perf::plain_sample(view, layout);
    if (pair && pair->first == loop.from.value() && pair->second == loop.to.value()) ++seen;
  });
  return seen == kTurns ? BtsTrial::kBts : BtsTrial::kSampler;
}

}  // namespace backtrail::tracee
