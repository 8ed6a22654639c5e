// SPDX-License-Identifier: Apache-2.0
#include "ptrace/source/step_source.hpp"

#include <utility>

#include <fmt/format.h>

#include "decoder/trace/stream_pin.hpp"
#include "ptrace/source/source_statistics.hpp"
#include "ptrace/tracee/thread.hpp"

namespace backtrail::tracee {

StepSource::StepSource(Process& process, decoder::TraceConsumer& sink,
                       std::unique_ptr<CallWatch> calls)
    : batch_{sink}, stepper_{process, *this, std::move(calls)}, facts_{batch_, stepper_.calls()} {}

void StepSource::push(const decoder::Record& record) {
  facts_.push(record);
  batch_.push(record);
}

void StepSource::flush() {
  facts_.flush();
  batch_.flush();
}

void StepSource::forget() {
  batch_.forget();
  facts_.forget();
}

Result<void> StepSource::resume(Thread& thread, const SourceResume& how) {
  facts_.resume();
  return stepper_.resume(thread, how);
}

void StepSource::go_on(Thread& thread, const SourceResume& how) {
  // If the thread is gone, its exit status will say so.
  (void)resume(thread, how);
}

StopVerdict StepSource::on_stop(Thread& thread, const WaitStatus& status) {
  return stepper_.on_stop(thread, status);
}

void StepSource::on_pc_written(TraceeAddr from, TraceeAddr to) {
  stepper_.pc_written(from, to);
}

void StepSource::on_code_written(TraceeAddr begin, TraceeAddr end) {
  stepper_.calls().code_written(begin, end);
  flush();
}

std::optional<SignalSlice::Clock::time_point> StepSource::stop_due() const {
  return stepper_.signals().stop_due();
}

std::uint64_t StepSource::held_signals() const {
  return stepper_.signals().slice().held();
}

void StepSource::pin(std::uint64_t id, std::uint32_t ahead) {
  // During a step, at most one record is ahead.
  batch_.push(decoder::pin_record(id, ahead));
}

void StepSource::detach(Thread& thread) {
  stepper_.detach(thread);
  flush();
}

void StepSource::add_to(SourceStatistics& sums) const {
  sums.instructions += stepper_.instructions();
  sums.stepped += stepper_.instructions();
}

std::string StepSource::statistics() const {
  return fmt::format("step: {} instructions, {} records", stepper_.instructions(), batch_.pushed());
}

}  // namespace backtrail::tracee
