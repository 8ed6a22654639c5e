// SPDX-License-Identifier: Apache-2.0
#include "decoder/perf/perf_record.hpp"

#include "arch/base/bytes.hpp"

namespace backtrail::decoder::perf {
namespace {

/// Takes numbers from the front. A missing one is 0 and sets broken().
class Fields {
 public:
  explicit Fields(std::span<const std::uint8_t> bytes) : bytes_{bytes} {}

  std::uint64_t u64() { return take<std::uint64_t>(); }
  std::uint32_t u32() { return take<std::uint32_t>(); }
  std::span<const std::uint8_t> bytes(std::uint64_t count) {
    if (count > bytes_.size()) return broken_ = true, std::span<const std::uint8_t>{};
    const auto front = bytes_.first(count);
    bytes_ = bytes_.subspan(count);
    return front;
  }
  [[nodiscard]] bool broken() const { return broken_; }
  [[nodiscard]] std::size_t left() const { return bytes_.size(); }

 private:
  template <typename T>
  T take() {
    const auto front = bytes(sizeof(T));
    return front.empty() ? T{0} : load_le<T>(front.data());
  }

  std::span<const std::uint8_t> bytes_;
  bool broken_ = false;
};

/// Reads the fields of a trailer in their order.
SampleId read_trailer(Fields& fields, std::uint64_t type) {
  SampleId out;
  if ((type & kSampleTid) != 0) {
    out.pid = fields.u32();
    out.tid = fields.u32();
  }
  if ((type & kSampleTime) != 0) out.time = fields.u64();
  if ((type & kSampleId) != 0) out.id = fields.u64();
  if ((type & kSampleStreamId) != 0) (void)fields.u64();
  if ((type & kSampleCpu) != 0) {
    out.cpu = fields.u32();
    (void)fields.u32();
  }
  if ((type & kSampleIdentifier) != 0) out.id = fields.u64();
  return out;
}

std::size_t trailer_bytes(std::uint64_t type) {
  std::size_t fields = 0;
  for (const std::uint64_t bit :
       {kSampleTid, kSampleTime, kSampleId, kSampleStreamId, kSampleCpu, kSampleIdentifier}) {
    fields += (type & bit) != 0 ? 1 : 0;
  }
  return fields * sizeof(std::uint64_t);
}

SampleRecord read_branches(Fields& fields, const SampleLayout& layout, SampleRecord sample) {
  const std::uint64_t count = fields.u64();
  if ((layout.branch_sample_type & kBranchHwIndex) != 0) (void)fields.u64();
  constexpr std::uint64_t kMost = 1U << 16U;
  sample.branches = fields.bytes(count > kMost ? ~std::uint64_t{0} : count * kBtsRecordBytes);
  return sample;
}

ParsedRecord read_sample(Fields& fields, const SampleLayout& layout) {
  const std::uint64_t type = layout.sample_type;
  ParsedRecord out;
  SampleRecord sample;
  if ((type & kSampleIdentifier) != 0) out.sample.id = fields.u64();
  if ((type & kSampleIp) != 0) sample.ip = fields.u64();
  if ((type & kSampleTid) != 0) {
    out.sample.pid = fields.u32();
    out.sample.tid = fields.u32();
  }
  if ((type & kSampleTime) != 0) out.sample.time = fields.u64();
  if ((type & kSampleAddr) != 0) sample.addr = fields.u64();
  if ((type & kSampleId) != 0) out.sample.id = fields.u64();
  if ((type & kSampleStreamId) != 0) (void)fields.u64();
  if ((type & kSampleCpu) != 0) {
    out.sample.cpu = fields.u32();
    (void)fields.u32();
  }
  if ((type & kSamplePeriod) != 0) (void)fields.u64();
  if ((type & kSampleBranchStack) != 0) sample = read_branches(fields, layout, sample);
  out.body = sample;
  return out;
}

RecordBody read_body(const RecordView& record, Fields& fields) {
  // A braced list is evaluated from left to right, which is the order of the bytes.
  switch (record.type) {
    case RecordType::kLost:
      return LostRecord{fields.u64(), fields.u64()};
    case RecordType::kLostSamples:
      return LostSamplesRecord{fields.u64()};
    case RecordType::kAux:
      return AuxRecord{fields.u64(), fields.u64(), fields.u64()};
    case RecordType::kItraceStart:
      return ItraceStartRecord{fields.u32(), fields.u32()};
    case RecordType::kThrottle:
    case RecordType::kUnthrottle:
      (void)fields.bytes(3 * sizeof(std::uint64_t));
      return ThrottleRecord{record.type == RecordType::kThrottle};
    case RecordType::kSwitchCpuWide:
      (void)fields.u64();
      [[fallthrough]];
    case RecordType::kSwitch:
      return SwitchRecord{(record.misc & kMiscSwitchOut) != 0,
                          (record.misc & kMiscSwitchPreempt) != 0};
    case RecordType::kExit: {
      ExitRecord exit;
      exit.pid = fields.u32();
      (void)fields.u32();
      exit.tid = fields.u32();
      (void)fields.u32();
      (void)fields.u64();
      return exit;
    }
    default:
      return OtherRecord{};
  }
}

}  // namespace

ParsedRecord parse_record(const RecordView& record, const SampleLayout& layout) {
  Fields fields{record.body};
  ParsedRecord out;
  if (record.type == RecordType::kSample) {
    out = read_sample(fields, layout);
  } else {
    out.body = read_body(record, fields);
    // The trailer is at the end of the record; newer kernels may put fields before it.
    if (layout.id_all && fields.left() >= trailer_bytes(layout.sample_type)) {
      Fields trailer{record.body.last(trailer_bytes(layout.sample_type))};
      out.sample = read_trailer(trailer, layout.sample_type);
    }
  }
  if (fields.broken()) out.body = BrokenRecord{};
  return out;
}

BranchEntry read_branch_entry(std::span<const std::uint8_t> branches, std::size_t number) {
  const std::size_t at = number * kBtsRecordBytes;
  return {load_le<std::uint64_t>(branches, at), load_le<std::uint64_t>(branches, at + 8),
          load_le<std::uint64_t>(branches, at + 16)};
}

}  // namespace backtrail::decoder::perf
