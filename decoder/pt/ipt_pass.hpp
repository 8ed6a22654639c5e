// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Decodes Intel PT packets into branch records with libipt.

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

/// Decodes one stretch of packets, piece by piece.
class IptPass {
 public:
  /// Borrows `insns`; copies the packets.
  IptPass(InsnCache& insns, std::span<const std::uint8_t> packets,
          const std::optional<CpuIdentity>& cpu, std::span<const PtCodeFile> files);
  ~IptPass();
  IptPass(const IptPass&) = delete;
  IptPass& operator=(const IptPass&) = delete;

  /// Decodes from the PSB at `offset` to the first error or the end, and appends to `out`. Returns
  /// the offset of the PSB at which decoding can resume; nullopt at the end.
  std::optional<std::size_t> run(std::size_t offset, PtPlace& place, std::vector<Record>& out);
  /// Returns the offset of the error of the last run; nullopt if it reached the end.
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
  std::uint64_t position_ = 0;  ///< Offset in the packets before the last block.
  std::size_t confirmed_ = 0;   ///< Number of records that do not depend on a packet still to come.
  std::optional<std::size_t> failed_at_;
  std::size_t blocks_ = 0;  ///< Blocks since the last packet.
};

}  // namespace backtrail::decoder
