// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Crashes a recorded inferior under the engine and writes its core.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <unistd.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "arch/base/file_bytes.hpp"
#include "decoder/corefile/trace_blocks.hpp"
#include "engine_driver.hpp"
#include "ptrace/core/core_writer.hpp"
#include "ptrace/os/ptrace_request.hpp"
#include "ptrace/trace/thread_trace.hpp"
#include "test/support/temporary_folder.hpp"

namespace backtrail::tracee {

using test::TemporaryFolder;

[[nodiscard]] inline std::vector<std::uint8_t> bytes_of(const std::string& path) {
  return file_bytes(path).value_or(std::vector<std::uint8_t>{});
}

class RecordList final : public decoder::TraceConsumer {
 public:
  void consume(std::span<const decoder::Record> records) override {
    all.insert(all.end(), records.begin(), records.end());
  }
  std::vector<decoder::Record> all;
};

[[nodiscard]] inline CoreTrace core_trace(pid_t tid, const std::vector<decoder::Record>& records) {
  CoreTrace trace;
  trace.tid = static_cast<std::uint32_t>(tid);
  trace.name = "traced";
  trace.end = trace.held = records.size();
  trace.newest = [tid, &records, end = records.size()](CoreTraceBlock& out) mutable {
    if (end == 0) return false;
    out.first = end - std::min<std::size_t>(decoder::kBlockRecords, end);
    out.records = end - out.first;
    out.bytes.clear();
    decoder::append_block(static_cast<std::uint32_t>(tid), out.first,
                          std::span{records}.subspan(out.first, out.records), out.bytes);
    end = out.first;
    return true;
  };
  return trace;
}

/// Runs an inferior up to its first signal.
class Crash {
 public:
  explicit Crash(const std::string& name, const std::vector<std::string>& arguments = {}) {
    pid = driver.launch(name, arguments);
    for (auto event = driver.run(); event; event = driver.run()) {
      if (event->kind != StopKind::kSignal) continue;
      cause.signal = event->signal;
      cause.tid = event->thread.tid;
      if (const auto info = request::read_siginfo(cause.tid)) cause.siginfo = *info;
      break;
    }
    EXPECT_NE(cause.signal, 0) << name << " did not crash";
  }
  [[nodiscard]] Process& process() { return *driver.engine.find(pid); }

  Result<CoreResult> write(const std::string& path, const CoreOptions& options = {}) {
    return write_core(process(), cause, traces, path, options);
  }

  EngineDriver driver;
  pid_t pid = 0;
  CoreCause cause;
  std::vector<CoreTrace> traces;
};

}  // namespace backtrail::tracee
