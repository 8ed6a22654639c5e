// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Decodes Intel PT packets into branch records.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "decoder/pt/flow_team.hpp"
#include "decoder/pt/pt_code_file.hpp"
#include "decoder/pt/pt_errata.hpp"
#include "decoder/trace/trace_consumer.hpp"

namespace backtrail::decoder {

/// Decodes stretches of one thread's packets. The code must be what ran.
///
/// Records are as those of other sources, as far as packets tell:
/// - a stretch without a PSB has no records; each other begins with a gap of reason kStart;
/// - tracing that stopped before an instruction and continued elsewhere is kAsync: the kernel moved
///   the pc (a signal). After a system call, where no packet has the origin, it is a gap of reason
///   kUnseenAsync;
/// - lost packets are a gap of reason kOverflow with an unknown number of branches; packets that
///   cannot be decoded are a gap of reason kUndecodable up to the next PSB;
/// - a conditional jump to the next instruction is no branch, as with single steps;
/// - code after the last packet is left out while tracing is on, because it may not have run. So
///   the records of a prefix of the packets are a prefix of the records.
///
/// FlowDecoder handles what user programs usually produce, about twenty times as fast as libipt. At
/// anything else, libipt decodes from the last PSB to the next error, so libipt decides what is an
/// error.
class PtDecoder {
 public:
  /// Borrows `insns`. `cpu` determines the errata; a CPU unknown to libipt has none.
  explicit PtDecoder(InsnCache& insns, std::optional<CpuIdentity> cpu = std::nullopt);

  /// Sets the program's present mappings, until the next call. Unreadable files are left out. Used
  /// by libipt only; other code comes from the instruction cache's code reader.
  void set_files(std::vector<PtCodeFile> files) { files_ = std::move(files); }
  /// Sets how many threads decode long stretches; by default all CPUs of the machine. The code
  /// reader is never called by two threads at once.
  void use_threads(PtThreads threads);
  /// Lets libipt decode everything, for comparison.
  void use_libipt_alone() { alone_ = true; }

  /// Passes the records of a whole stretch to `consumer`, oldest first, in batches. Returns true if
  /// tracing is off at its end, so that nothing was left out.
  bool decode(std::span<const std::uint8_t> packets, TraceConsumer& consumer);
  /// Appends the records to `out`.
  bool decode(std::span<const std::uint8_t> packets, std::vector<Record>& out);

  /// Returns how often libipt was needed.
  [[nodiscard]] std::uint64_t times_helped() const { return times_helped_; }

 private:
  InsnCache& insns_;
  std::optional<CpuIdentity> cpu_;
  PtErrata errata_;
  std::vector<PtCodeFile> files_;
  std::unique_ptr<LockedCode> code_;
  std::unique_ptr<FlowGraph> graph_;
  std::unique_ptr<FlowTeam> team_;
  bool alone_ = false;
  std::uint64_t times_helped_ = 0;
};

}  // namespace backtrail::decoder
