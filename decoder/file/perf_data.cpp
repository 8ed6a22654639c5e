// SPDX-License-Identifier: Apache-2.0
#include "decoder/file/perf_data.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <string_view>
#include <utility>

#include "arch/base/bytes.hpp"

namespace backtrail::decoder {
namespace {

using perf::kHeaderBytes;
using perf::RecordType;
using Bytes = std::span<const std::uint8_t>;

constexpr std::string_view kMagic = "PERFILE2";
constexpr std::string_view kMagicSwapped = "2ELIFREP";
constexpr std::uint64_t kPipeHeaderBytes = 16;
constexpr std::uint64_t kFileHeaderBytes = 104;
constexpr std::size_t kFeatureBits = 256;
constexpr std::size_t kCpuidFeature = 9;
constexpr std::size_t kAuxtraceRecordBytes = 48;
constexpr std::size_t kTracingDataBytes = 12;

bool begins_with(Bytes bytes, std::string_view text) {
  return bytes.size() >= text.size() && std::equal(text.begin(), text.end(), bytes.begin());
}

/// Returns the part of [offset, offset + size) that is in the file.
Bytes section(Bytes file, std::uint64_t offset, std::uint64_t size) {
  offset = std::min<std::uint64_t>(offset, file.size());
  return file.subspan(offset, std::min<std::uint64_t>(size, file.size() - offset));
}

/// Returns a string stored with its length before it and padded with zeros.
std::string counted_text(Bytes bytes) {
  if (bytes.size() < 4) return {};
  const Bytes text = section(bytes, 4, load_le<std::uint32_t>(bytes, 0));
  return {text.begin(), std::find(text.begin(), text.end(), std::uint8_t{0})};
}

class Reader {
 public:
  explicit Reader(Bytes file) : file_{file} {}

  /// Reads the records in [begin, end).
  void walk(std::uint64_t begin, std::uint64_t end) {
    std::uint64_t at = begin;
    while (at < end) {
      const std::uint64_t size = record(file_.subspan(at, end - at));
      if (size == 0) {
        out_.broken_at = at;
        return;
      }
      at += std::min(size, end - at);
    }
  }

  void miss(std::uint64_t bytes) { out_.missing_bytes = bytes; }

  void feature_sections(std::uint64_t table) {
    std::uint64_t at = table;
    for (std::size_t bit = 0; bit < kFeatureBits; ++bit) {
      if ((load_le<std::uint64_t>(file_, 72 + bit / 64 * 8) >> (bit % 64) & 1U) == 0) continue;
      const Bytes entry = section(file_, at, 16);
      at += 16;
      if (entry.size() < 16) return;
      if (bit == kCpuidFeature)
        out_.cpuid = counted_text(
            section(file_, load_le<std::uint64_t>(entry, 0), load_le<std::uint64_t>(entry, 8)));
    }
  }

  PerfDataFile take() { return std::move(out_); }

 private:
  /// Reads the first record of `rest`. Returns the distance to the next one; 0 if there is no valid
  /// record.
  std::uint64_t record(Bytes rest) {
    if (rest.size() < kHeaderBytes) return 0;
    const auto type = static_cast<RecordType>(load_le<std::uint32_t>(rest, 0));
    const std::uint64_t size = load_le<std::uint16_t>(rest, 6);
    if (size < kHeaderBytes || size > rest.size()) return 0;
    ++out_.records;
    const Bytes bytes = rest.first(size);
    switch (type) {
      case RecordType::kAuxtrace:
        return auxtrace(rest, bytes);
      case RecordType::kAuxtraceInfo:
        auxtrace_info(bytes);
        break;
      case RecordType::kTracingData:
        if (size < kTracingDataBytes) return 0;
        return size + (load_le<std::uint32_t>(bytes, 8) + std::uint64_t{7}) / 8 * 8;
      case RecordType::kCompressed:
      case RecordType::kCompressed2:
        out_.compressed = true;
        break;
      case RecordType::kFeature:
        if (size >= 16 && load_le<std::uint64_t>(bytes, 8) == kCpuidFeature)
          out_.cpuid = counted_text(bytes.subspan(16));
        break;
      default:
        kernel_record({type, load_le<std::uint16_t>(rest, 4), bytes.subspan(kHeaderBytes)});
        break;
    }
    return size;
  }

  void kernel_record(const perf::RecordView& record) {
    if (record.type != RecordType::kAux && record.type != RecordType::kLost) return;
    const auto parsed = perf::parse_record(record, {});
    if (const auto* aux = std::get_if<perf::AuxRecord>(&parsed.body)) {
      ++out_.aux_records;
      out_.aux_record_bytes += aux->size;
      out_.aux_truncated += (aux->flags & perf::kAuxTruncated) != 0 ? 1 : 0;
    } else if (const auto* lost = std::get_if<perf::LostRecord>(&parsed.body)) {
      out_.lost += lost->count;
    }
  }

  void auxtrace_info(Bytes bytes) {
    if (bytes.size() < 16) return;
    const auto kind = load_le<std::uint32_t>(bytes, 8);
    if (kind <= 2) out_.aux_kind = static_cast<AuxTraceKind>(kind);
    const std::size_t word = out_.aux_kind == AuxTraceKind::kIntelPt ? 8 : 5;
    if (bytes.size() >= 16 + (word + 1) * 8)
      out_.snapshot = load_le<std::uint64_t>(bytes, 16 + word * 8) != 0;
  }

  std::uint64_t auxtrace(Bytes rest, Bytes header) {
    if (header.size() < kAuxtraceRecordBytes) return 0;
    const auto size = load_le<std::uint64_t>(header, 8);
    AuxTraceBlock block;
    block.offset = load_le<std::uint64_t>(header, 16);
    block.tid = load_le<std::uint32_t>(header, 36);
    block.cpu = load_le<std::uint32_t>(header, 40);
    const auto index = load_le<std::uint32_t>(header, 32);
    block.bytes = section(rest, header.size(), size);
    block.missing_bytes = size - block.bytes.size();
    // Positions continue, so bytes below the end of an earlier snapshot of this area are repeated.
    std::uint64_t& end = ends_[index];
    if (out_.snapshot && block.offset < end) {
      block.repeated_bytes = std::min<std::uint64_t>(end - block.offset, block.bytes.size());
      block.bytes = block.bytes.subspan(block.repeated_bytes);
    }
    end = std::max(end, block.offset + size);
    out_.blocks.push_back(block);
    const std::uint64_t whole = header.size() + size;
    return whole < size ? rest.size() : whole;
  }

  Bytes file_;
  PerfDataFile out_;
  std::map<std::uint32_t, std::uint64_t> ends_;
};

}  // namespace

Result<PerfDataFile> read_perf_data(Bytes file) {
  if (begins_with(file, kMagicSwapped))
    return fail(TraceErrc::kUnsupported, "perf.data of the other byte order");
  if (!begins_with(file, kMagic) || file.size() < kPipeHeaderBytes)
    return fail(TraceErrc::kMalformed, "perf.data: magic");
  Reader reader{file};
  if (load_le<std::uint64_t>(file, 8) == kPipeHeaderBytes) {
    reader.walk(kPipeHeaderBytes, file.size());
    return reader.take();
  }
  if (file.size() < kFileHeaderBytes) return fail(TraceErrc::kMalformed, "perf.data: header");
  const auto offset = load_le<std::uint64_t>(file, 40);
  const auto size = load_le<std::uint64_t>(file, 48);
  if (offset > file.size()) return fail(TraceErrc::kMalformed, "perf.data: data section", offset);
  // The size is written last. If it is 0 the recorder died, and the records extend to the end.
  const std::uint64_t rest = file.size() - offset;
  reader.walk(offset, offset + (size == 0 ? rest : std::min(size, rest)));
  reader.miss(size > rest ? size - rest : 0);
  if (size != 0 && size < rest) reader.feature_sections(offset + size);
  return reader.take();
}

}  // namespace backtrail::decoder
