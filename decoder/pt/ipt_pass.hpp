#pragma once
/// @file
/// Intel PT packets -> branch records, by libipt.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "decoder/pt/pt_code_file.hpp"
#include "decoder/pt/pt_errata.hpp"
#include "decoder/pt/pt_place.hpp"

struct pt_block_decoder;
struct pt_event;

namespace backtrail::decoder {

/// One stretch of packets, decoded piece by piece.
class IptPass {
 public:
  /// `insns` is borrowed; the packets are copied.
  IptPass(InsnCache& insns, std::span<const std::uint8_t> packets,
          const std::optional<CpuIdentity>& cpu, std::span<const PtCodeFile> files);
  ~IptPass();
  IptPass(const IptPass&) = delete;
  IptPass& operator=(const IptPass&) = delete;

  /// Decodes from the PSB at `offset` on to what cannot be decoded, or to the end. Appends to
  /// `out`. Returns where the PSB lies at which decoding can begin again; nothing when that was
  /// the end.
  std::optional<std::size_t> run(std::size_t offset, PtPlace& place, std::vector<Record>& out);
  /// Where in the packets the last run failed; nothing if it came to the end.
  [[nodiscard]] std::optional<std::size_t> failed_at() const { return failed_at_; }

 private:
  int step(int status, PtPlace& place, std::vector<Record>& out);
  void note(const pt_event& event, PtPlace& place, std::vector<Record>& out);
  void note_position(const std::vector<Record>& out);
  void arrive(TraceeAddr at, PtPlace& place, std::vector<Record>& out);

  struct Free {
    void operator()(pt_block_decoder* decoder) const;
  };

  InsnCache& insns_;
  std::vector<std::uint8_t> packets_;
  std::unique_ptr<pt_block_decoder, Free> decoder_;
  std::uint64_t position_ = 0;  ///< Of the packets, when the last block was asked for.
  std::size_t confirmed_ = 0;   ///< So many records need no packet that is not there yet.
  std::optional<std::size_t> failed_at_;
  std::size_t blocks_ = 0;  ///< Since the last packet.
};

}  // namespace backtrail::decoder
