// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Runs an inferior to its end with its threads recorded, and collects the records.

#include <csignal>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "arch/base/value_kind.hpp"
#include "decoder/trace/trace_consumer.hpp"
#include "elf_symbols.hpp"
#include "engine_driver.hpp"
#include "ptrace/trace/thread_trace.hpp"

namespace backtrail::tracee {

class Collector : public decoder::TraceConsumer {
 public:
  void consume(std::span<const decoder::Record> records) override {
    all.insert(all.end(), records.begin(), records.end());
  }
  void consume_facts(std::span<const decoder::ValueFact> values) override {
    for (decoder::ValueFact fact : values) {
      if (arch::is_of_memory(fact.kind)) continue;
      fact.record = all.size() - 1 - fact.record;
      facts.push_back(fact);
    }
  }
  std::vector<decoder::Record> all;
  /// By the numbers of their records; without those of memory.
  std::vector<decoder::ValueFact> facts;
};

struct Outcome {
  StopEvent end;
  /// Collected records by thread, in the order of creation.
  std::vector<std::unique_ptr<Collector>> threads;
  /// Statistics of the first thread, at its last stop or up to RunOptions::statistics_every stops
  /// earlier.
  std::string statistics;

  [[nodiscard]] const std::vector<decoder::Record>& records() const { return threads[0]->all; }
  [[nodiscard]] bool exited_with(int code) const {
    return end.kind == StopKind::kProcessExited && end.exit_code == code;
  }
};

struct RunOptions {
  SourceKind source = SourceKind::kCache;
  std::string program = {};
  std::vector<std::string> arguments = {};
  /// Number of interruptions, as early and as dense as the machine allows.
  int stops = 0;
  /// Function at which recording begins; empty = the first instruction. Only for programs that are
  /// not position independent.
  std::string from = {};
  ValueDepth values = ValueDepth::kFree;
  bool threads = false;  ///< Record and collect threads created later too.
  bool forks = false;    ///< Record and collect forked children too.
  std::shared_ptr<cache::PersistentStore> kept = {};  ///< For translations; nullptr: none are kept.
  std::shared_ptr<SourceStatistics> sums = {};        ///< Complete after the run.
  std::shared_ptr<cache::SpareMemory> spare = {};     ///< nullptr: each process has new memory.
  bool collects = true;  ///< Collect records; otherwise they have no reader.
  /// Interval, in stops, at which statistics are taken. They read everything translated.
  int statistics_every = 32;
  /// Called with the first thread at every stop except the last.
  std::function<void(EngineDriver&, Thread&)> at_stop = {};
};

inline void collect(EngineDriver& driver, ThreadId id, const RunOptions& options,
                    Outcome& outcome) {
  Thread* thread = driver.engine.find(id);
  if (thread == nullptr) return;
  constexpr std::uint64_t kNobodys = 1U << 20U;
  const std::uint64_t history = options.collects ? 0 : kNobodys;
  const TraceConfig config{.format = TraceFormat::kBts,
                           .size_bytes = history,
                           .statistics = options.sums,
                           .values = options.values,
                           .kept = options.kept,
                           .spare = options.spare};
  EXPECT_TRUE(driver.engine.enable_trace(id, config));
  thread = driver.engine.find(id);
  if (thread == nullptr || !thread->trace() || !options.collects) return;
  outcome.threads.push_back(std::make_unique<Collector>());
  if (const auto pc = thread->next_pc()) thread->trace()->hub().add(*outcome.threads.back(), *pc);
}

/// Runs the program. Passes all signals to it except SIGINT.
inline Outcome run_recorded(const RunOptions& options) {
  Outcome outcome;
  EngineDriver driver{options.source};
  driver.engine.set_reported({.fork = options.forks, .threads = options.threads});
  const pid_t pid = driver.launch(options.program, options.arguments);
  const ThreadId id{pid, pid};
  if (!options.from.empty()) {
    const BreakpointSpec begin{.kind = BreakpointKind::kSoftware,
                               .address = symbol_of(options.program, options.from),
                               .length = 1};
    EXPECT_TRUE(driver.engine.insert(pid, begin));
    EXPECT_TRUE(driver.run());
    EXPECT_TRUE(driver.engine.remove(pid, begin));
  }
  collect(driver, id, options, outcome);
  if (outcome.threads.empty()) outcome.threads.push_back(std::make_unique<Collector>());
  int stops = options.stops;
  int seen = 0;
  std::map<ThreadId, int> signals;
  for (;;) {
    std::vector<std::pair<ThreadId, ResumeAction>> orders;
    for (const Process* process : driver.engine.processes()) {
      if (process->pid() != pid && !options.forks) continue;
      for (const auto& thread : process->threads()) {
        const auto signal = signals.find(thread->id());
        orders.emplace_back(thread->id(),
                            ResumeAction{.signal = signal == signals.end() ? 0 : signal->second});
      }
    }
    signals.clear();
    EXPECT_TRUE(driver.engine.resume(orders));
    if (stops > 0) {
      --stops;
      driver.engine.interrupt();
    }
    const auto event = driver.await();
    if (!event) {
      ADD_FAILURE() << options.program << " does not end";
      (void)driver.engine.kill(pid);
      return outcome;
    }
    outcome.end = *event;
    const bool ends =
        event->kind == StopKind::kProcessExited || event->kind == StopKind::kProcessSignalled;
    if (ends && event->thread.pid == pid) break;
    if (event->kind == StopKind::kFork) collect(driver, event->child, options, outcome);
    if (event->kind == StopKind::kThreadCreated) collect(driver, event->thread, options, outcome);
    if (event->kind == StopKind::kSignal && event->signal != SIGINT) {
      signals[event->thread] = event->signal;
    }
    Thread* first = driver.engine.find(id);
    if (first == nullptr || !first->trace()) continue;
    if (seen++ % options.statistics_every == 0) {
      outcome.statistics = first->trace()->source().statistics();
    }
    if (options.at_stop) options.at_stop(driver, *first);
  }
  return outcome;
}

}  // namespace backtrail::tracee
