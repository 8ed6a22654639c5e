#pragma once
/// @file
/// Intel PT packets -> branch records.

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
/// Records are as other sources make them, as far as packets tell:
/// - a stretch without a PSB has no records; each begins with a gap of reason kStart;
/// - tracing that stopped before an instruction and went on elsewhere is kAsync: the kernel made it
///   so (a signal). Behind a system call, where no packet says from where, it is a gap of reason
///   kUnseenAsync;
/// - lost packets are a gap of reason kOverflow, how many branches is not known; what cannot be
///   decoded is one of reason kUndecodable, up to the next PSB;
/// - a conditional jump to the next instruction is no branch, as under single steps;
/// - what follows the last packet alone is left out while tracing was on: it may not have run. So
///   the records of a stretch's front are the front of its records.
///
/// Two decoders do it. Ours follows what user programs write all day, some twenty times as fast;
/// where it meets anything else, libipt decodes from the last PSB before it on, up to the next
/// error, and so has the last word on what is an error.
class PtDecoder {
 public:
  /// `insns` is borrowed. `cpu` names the errata; one that libipt does not know has none.
  explicit PtDecoder(InsnCache& insns, std::optional<CpuIdentity> cpu = std::nullopt);

  /// The program's mappings now; until the next call. Files that cannot be read are left out. For
  /// libipt only: code comes from the code reader of the instruction cache else.
  void set_files(std::vector<PtCodeFile> files) { files_ = std::move(files); }
  /// Long stretches are decoded by so many threads; all the machine's CPUs if nothing is said. The
  /// code reader is never asked by two at once.
  void use_threads(PtThreads threads);
  /// For comparison: libipt decodes everything.
  void use_libipt_alone() { alone_ = true; }

  /// Hands the records of a whole stretch to `consumer`, oldest first, in batches. Returns whether
  /// tracing is off at its end, so that nothing was left out.
  bool decode(std::span<const std::uint8_t> packets, TraceConsumer& consumer);
  /// Appends them to `out`.
  bool decode(std::span<const std::uint8_t> packets, std::vector<Record>& out);

  /// How many times libipt had to help.
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
