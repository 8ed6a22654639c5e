// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Branch traces of a dead program's threads, in the format that the client wants.

#include <map>
#include <string>
#include <variant>
#include <vector>

#include "decoder/bts/bts_history.hpp"
#include "decoder/corefile/core_file.hpp"
#include "decoder/corefile/trace_archive.hpp"
#include "decoder/pt/pt_history.hpp"
#include "decoder/trace/insn_cache.hpp"
#include "ptrace/core/program_memory.hpp"
#include "server/target/target.hpp"

namespace backtrail::server {

/// Reads the traces of a core file as a live target's would be read.
class CoreTraces final : public BranchTracing {
 public:
  /// `core` and `memory` are borrowed.
  CoreTraces(const decoder::CoreFile& core, tracee::ProgramMemory& memory);

  Result<void> enable(ThreadId thread, tracee::TraceConfig config) override;
  Result<void> disable(ThreadId thread) override;
  std::optional<tracee::TraceConfig> config(ThreadId thread) override;
  Result<TraceDocument> read(ThreadId thread, TraceRead what) override;
  std::string describe() override;

  [[nodiscard]] const decoder::TraceArchive& archive() const { return archive_; }
  /// Threads that had ended when the file was written.
  [[nodiscard]] const std::vector<decoder::CoreThread>& ended() const { return ended_; }
  /// Returns a thread that is in the core or had ended; nullptr if the file does not know it.
  [[nodiscard]] const decoder::CoreThread* find(ThreadId thread) const;

 private:
  struct Enabled {
    tracee::TraceConfig config;
    TraceeAddr pc;
    std::variant<decoder::BtsHistory, decoder::PtHistory> history;
    bool read = false;
  };

  const decoder::CoreFile& core_;
  decoder::TraceArchive archive_;
  std::vector<decoder::CoreThread> ended_;
  decoder::InsnCache insns_;
  std::map<pid_t, Enabled> enabled_;  ///< By tid.
};

}  // namespace backtrail::server
