// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Decodes a stream of Intel PT that grows while it is read.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "decoder/pt/pt_decoder.hpp"
#include "decoder/pt/pt_packet_consumer.hpp"
#include "decoder/trace/trace_consumer.hpp"

namespace backtrail::decoder {

/// Takes bytes as they arrive and passes on each record once, on flush(). Decoding restarts at the
/// last PSB whenever tracing is off, so packets may be incomplete at the end of a piece.
class PtRecordStream : public PtPacketConsumer {
 public:
  /// Borrows `consumer`.
  PtRecordStream(PtDecoder decoder, TraceConsumer& consumer)
      : decoder_{std::move(decoder)}, consumer_{consumer} {}

  void append(std::span<const std::uint8_t> packets) override;
  /// Reports missing bytes, which show as a gap before the next record.
  void hole() override;
  void clear() override { hole(); }

  /// Passes on the records of all bytes so far.
  void flush();
  /// Skips the records of all bytes so far, because nobody listens.
  void skip();
  /// Passes on all records so far, and then one that no packet has: the debugger moved the pc, or
  /// (kExec) the program was replaced.
  void insert(const Record& record);
  [[nodiscard]] PtDecoder& decoder() { return decoder_; }

 private:
  [[nodiscard]] Record joined(const Record& start) const;
  void emit(std::span<const Record> records);
  void drop_finished();
  void begin_anew();

  PtDecoder decoder_;
  TraceConsumer& consumer_;
  std::vector<std::uint8_t> bytes_;  ///< Bytes that are decoded again.
  std::size_t seen_ = 0;             ///< Number of bytes present at the last flush() or skip().
  std::size_t emitted_ = 0;          ///< Number of their records already passed on.
  bool skipped_ = false;             ///< Records of the bytes seen must not be passed on.
  bool started_ = false;             ///< The consumer has received its first record.
  bool hole_ = false;
  std::optional<Record> inserted_;  ///< The packets that follow may report it again.
};

}  // namespace backtrail::decoder
