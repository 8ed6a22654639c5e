#pragma once
/// @file
/// Intel PT packets -> branch records, by libipt.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "decoder/pt/cpu_identity.hpp"
#include "decoder/trace/insn_cache.hpp"
#include "decoder/trace/record.hpp"

namespace backtrail::decoder {

/// A file's bytes in the program's memory. libipt remembers blocks of files, and so follows them
/// some four times as fast as code that it is given instruction by instruction.
struct PtCodeFile {
  std::string path;
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  TraceeAddr address;
};

/// Decodes stretches of one thread's packets. Code comes from the files where they are given, else
/// from the code reader of the instruction cache, and must be what ran.
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
class PtDecoder {
 public:
  /// `insns` is borrowed. `cpu` names the errata; one that libipt does not know has none.
  explicit PtDecoder(InsnCache& insns, std::optional<CpuIdentity> cpu = std::nullopt);

  /// The program's mappings now; until the next call. Files that cannot be read are left out.
  void set_files(std::vector<PtCodeFile> files) { files_ = std::move(files); }
  /// Appends the records of a whole stretch to `out`, oldest first. @return Whether tracing is off
  /// at its end, so that nothing was left out.
  bool decode(std::span<const std::uint8_t> packets, std::vector<Record>& out) const;

 private:
  InsnCache& insns_;
  std::optional<CpuIdentity> cpu_;
  std::vector<PtCodeFile> files_;
};

/// Whether libipt, and with it gdb, knows this CPU and its errata. It refuses others: for those no
/// identity is told, and decoding goes without errata.
[[nodiscard]] bool pt_errata_known(const CpuIdentity& cpu);

}  // namespace backtrail::decoder
