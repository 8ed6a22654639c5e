// SPDX-License-Identifier: Apache-2.0
#include "decoder/corefile/trace_blocks.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <zstd.h>

#include "arch/base/check.hpp"
#include "decoder/corefile/bytes.hpp"

namespace backtrail::decoder {
namespace {

constexpr int kCompressionLevel = 3;
constexpr std::size_t kChecksummedHeaderBytes = kBlockHeaderBytes - 8;

constexpr std::array<std::uint32_t, 256> make_crc_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < table.size(); ++i) {
    std::uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) {
      value = (value >> 1U) ^ ((value & 1U) != 0 ? 0xedb88320U : 0U);
    }
    table[i] = value;
  }
  return table;
}
constexpr auto kCrcTable = make_crc_table();

/// ByteWriter::signed_varint() into a buffer with enough room.
std::uint8_t* put_signed(std::uint8_t* out, std::uint64_t value) {
  std::uint64_t folded = (value << 1U) ^ (~(value >> 63U) + 1U);
  while (folded >= 0x80U) {
    *out++ = static_cast<std::uint8_t>(folded | 0x80U);
    folded >>= 7U;
  }
  *out++ = static_cast<std::uint8_t>(folded);
  return out;
}

/// Encodes what differs from a plain branch first, by position, and then two differences for each
/// record.
void encode(std::span<const Record> records, ByteWriter& out) {
  std::uint64_t special = 0;
  for (const Record& record : records) special += record.kind != RecordKind::kBranch ? 1U : 0U;
  out.varint(special);
  std::size_t last = 0;
  for (std::size_t i = 0; i < records.size(); ++i) {
    const Record& record = records[i];
    if (record.kind == RecordKind::kBranch) continue;
    out.varint(i - last);
    out.number(static_cast<std::uint8_t>(record.kind));
    out.number(static_cast<std::uint8_t>(record.reason));
    out.number(static_cast<std::uint8_t>(record.bound));
    out.varint(record.payload);
    last = i;
  }
  constexpr std::size_t kMostBytes = 20;  // Two numbers of 64 bits.
  std::vector<std::uint8_t>& bytes = out.buffer();
  const std::size_t before = bytes.size();
  bytes.resize(before + records.size() * kMostBytes);
  std::uint8_t* next = bytes.data() + before;
  std::uint64_t at = 0;
  for (const Record& record : records) {
    next = put_signed(next, record.from.value() - at);
    next = put_signed(next, record.to.value() - record.from.value());
    at = record.to.value();
  }
  bytes.resize(static_cast<std::size_t>(next - bytes.data()));
}

bool decode_special(ByteReader& in, std::span<Record> records) {
  const std::uint64_t special = in.varint();
  std::uint64_t at = 0;
  for (std::uint64_t i = 0; i < special && in.good(); ++i) {
    at += in.varint();
    const auto kind = in.number<std::uint8_t>();
    const auto reason = in.number<std::uint8_t>();
    const auto bound = in.number<std::uint8_t>();
    const std::uint64_t payload = in.varint();
    if (at >= records.size() || kind > static_cast<unsigned>(RecordKind::kGap) ||
        reason > static_cast<unsigned>(GapReason::kUnseenAsync) ||
        bound > static_cast<unsigned>(LossBound::kBatches)) {
      return false;
    }
    Record& record = records[static_cast<std::size_t>(at)];
    record.kind = static_cast<RecordKind>(kind);
    record.reason = static_cast<GapReason>(reason);
    record.bound = static_cast<LossBound>(bound);
    record.payload = static_cast<std::uint32_t>(payload);
  }
  return in.good();
}

bool decode(std::span<const std::uint8_t> raw, std::span<Record> records) {
  ByteReader in{raw};
  if (!decode_special(in, records)) return false;
  std::uint64_t at = 0;
  for (Record& record : records) {
    const std::uint64_t from = at + in.signed_varint();
    at = from + in.signed_varint();
    record.from = TraceeAddr{from};
    record.to = TraceeAddr{at};
  }
  return in.good() && in.rest().empty();
}

struct Compressor {
  Compressor() {
    ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, kCompressionLevel);
    ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
  }
  ~Compressor() { ZSTD_freeCCtx(context); }
  Compressor(const Compressor&) = delete;
  Compressor& operator=(const Compressor&) = delete;
  ZSTD_CCtx* context = ZSTD_createCCtx();
};

/// Parses the block whose header begins at `bytes`. Returns false if there is none.
bool parse_block(std::span<const std::uint8_t> bytes, std::uint32_t magic, TraceBlock& block) {
  ByteReader in{bytes};
  if (in.number<std::uint32_t>() != magic) return false;
  const auto crc = in.number<std::uint32_t>();
  if (in.rest().size() < kChecksummedHeaderBytes ||
      crc32(in.rest().first(kChecksummedHeaderBytes)) != crc) {
    return false;
  }
  block.tid = in.number<std::uint32_t>();
  block.records = in.number<std::uint32_t>();
  block.first = in.number<std::uint64_t>();
  block.raw_bytes = in.number<std::uint32_t>();
  block.stored = in.take(in.number<std::uint32_t>());
  return in.good() && block.records != 0 && block.records <= kBlockRecords &&
         block.raw_bytes <= kMaxRawBlockBytes;
}

}  // namespace

std::uint32_t crc32(std::span<const std::uint8_t> bytes) {
  std::uint32_t value = ~0U;
  for (const std::uint8_t byte : bytes) {
    value = (value >> 8U) ^ kCrcTable[(value ^ byte) & 0xffU];
  }
  return ~value;
}

void append_block(std::uint32_t tid, std::uint64_t first, std::span<const Record> records,
                  std::vector<std::uint8_t>& out) {
  BT_CHECK(!records.empty() && records.size() <= kBlockRecords);
  thread_local ByteWriter raw;
  raw.clear();
  encode(records, raw);
  append_packed({.tid = tid, .records = static_cast<std::uint32_t>(records.size()), .first = first},
                raw.bytes(), out);
}

void append_packed(const BlockTitle& title, std::span<const std::uint8_t> raw,
                   std::vector<std::uint8_t>& out) {
  thread_local Compressor compressor;
  BT_CHECK(raw.size() <= kMaxRawBlockBytes);
  const std::size_t at = out.size();
  out.resize(at + kBlockHeaderBytes + ZSTD_compressBound(raw.size()));
  const std::size_t stored =
      ZSTD_compress2(compressor.context, out.data() + at + kBlockHeaderBytes,
                     out.size() - at - kBlockHeaderBytes, raw.data(), raw.size());
  BT_CHECK(ZSTD_isError(stored) == 0);
  out.resize(at + kBlockHeaderBytes + stored);

  ByteWriter rest;
  rest.number(title.tid);
  rest.number(title.records);
  rest.number(title.first);
  rest.number(static_cast<std::uint32_t>(raw.size()));
  rest.number(static_cast<std::uint32_t>(stored));
  ByteWriter header;
  header.number(title.magic);
  header.number(crc32(rest.bytes()));
  header.put(rest.bytes());
  std::copy(header.bytes().begin(), header.bytes().end(),
            out.begin() + static_cast<std::ptrdiff_t>(at));
}

BlockScan scan_blocks(std::span<const std::uint8_t> segment) {
  BlockScan scan;
  const std::array kinds{std::pair{kBlockMagic, &scan.blocks}, std::pair{kTimesMagic, &scan.times},
                         std::pair{kNamesMagic, &scan.names}, std::pair{kFactsMagic, &scan.facts}};
  while (segment.size() >= kBlockHeaderBytes) {
    TraceBlock block;
    const auto kind = std::find_if(kinds.begin(), kinds.end(), [&](const auto& each) {
      return parse_block(segment, each.first, block);
    });
    if (kind != kinds.end()) {
      kind->second->push_back(block);
      segment = segment.subspan(kBlockHeaderBytes + block.stored.size());
    } else {
      ++scan.unreadable_bytes;
      segment = segment.subspan(1);
    }
  }
  scan.unreadable_bytes += segment.size();
  return scan;
}

Result<std::span<const std::uint8_t>> unpack_block(const TraceBlock& block) {
  thread_local std::vector<std::uint8_t> raw;
  raw.resize(kMaxRawBlockBytes);
  const std::size_t got =
      ZSTD_decompress(raw.data(), std::min<std::size_t>(raw.size(), block.raw_bytes),
                      block.stored.data(), block.stored.size());
  if (ZSTD_isError(got) != 0 || got != block.raw_bytes) {
    return fail(TraceErrc::kMalformed, "unpack a block of a trace", block.first);
  }
  return std::span<const std::uint8_t>{raw}.first(got);
}

Result<BlockCounts> count_block(const TraceBlock& block) {
  BT_TRY(const auto raw, unpack_block(block));
  // Only the special part is decoded; the branches after it are not.
  thread_local std::vector<Record> records;
  records.assign(block.records, Record{});
  ByteReader in{raw};
  if (!decode_special(in, records)) {
    return fail(TraceErrc::kMalformed, "read a block of records", block.first);
  }
  BlockCounts out;
  for (const Record& record : records) {
    if (record.kind == RecordKind::kBranch) continue;
    ++out.others;
    if (record.kind != RecordKind::kGap || record.reason != GapReason::kOverflow) continue;
    out.lost += record.bound == LossBound::kBatches ? 0 : record.payload;
    if (record.payload == 0 || record.bound != LossBound::kExact) out.lost_is_exact = false;
  }
  return out;
}

Result<void> decode_block(const TraceBlock& block, std::vector<Record>& out) {
  BT_TRY(const auto raw, unpack_block(block));
  const std::size_t before = out.size();
  out.resize(before + block.records);
  if (!decode(raw, std::span{out}.subspan(before))) {
    out.resize(before);
    return fail(TraceErrc::kMalformed, "decode a block of records", block.first);
  }
  return {};
}

}  // namespace backtrail::decoder
