#pragma once
/// @file
/// Records of a stream of Intel PT that grows while it is read.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "decoder/pt/pt_decoder.hpp"
#include "decoder/pt/pt_packet_consumer.hpp"
#include "decoder/trace/trace_consumer.hpp"

namespace backtrail::decoder {

/// Bytes go in as they come; records come out when they are asked for, each once. Decoding begins
/// again at the last PSB each time that tracing is off, so that no packet needs to be whole at the
/// end of a piece.
class PtRecordStream : public PtPacketConsumer {
 public:
  /// `consumer` is borrowed.
  PtRecordStream(PtDecoder decoder, TraceConsumer& consumer)
      : decoder_{std::move(decoder)}, consumer_{consumer} {}

  void append(std::span<const std::uint8_t> packets) override;
  /// What is lost is told with the next record.
  void hole() override;
  void clear() override { hole(); }

  /// Hands on what has come until now.
  void flush();
  /// Nobody listens: what has come until now is not handed on.
  void skip();
  /// Hands on what has come, and then a record that is in no packet: the debugger moved the pc, or
  /// (kExec) the program replaced itself.
  void insert(const Record& record);
  [[nodiscard]] PtDecoder& decoder() { return decoder_; }

 private:
  [[nodiscard]] Record joined(const Record& start) const;
  void emit(std::span<const Record> records);
  void drop_finished();
  void begin_anew();

  PtDecoder decoder_;
  TraceConsumer& consumer_;
  std::vector<std::uint8_t> bytes_;  ///< Those that are decoded again.
  std::size_t seen_ = 0;             ///< So many of them were there at the last flush() or skip().
  std::size_t emitted_ = 0;          ///< So many of their records were handed on.
  bool skipped_ = false;             ///< Records of the bytes seen are not to be handed on.
  bool started_ = false;             ///< The consumer has had its first record.
  bool hole_ = false;
  std::optional<Record> inserted_;  ///< The packets that follow tell of it, too.
};

}  // namespace backtrail::decoder
