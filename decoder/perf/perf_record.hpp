#pragma once
/// @file
/// One record of perf's data ring, in parts.

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <variant>

#include "arch/base/bytes.hpp"
#include "decoder/perf/perf_abi.hpp"

namespace backtrail::decoder::perf {

/// A record as bytes; valid while it is visited.
struct RecordView {
  RecordType type{};
  std::uint16_t misc = 0;
  std::span<const std::uint8_t> body;  ///< Without the header.
};

/// What the event was opened with; decides what fields records have.
struct SampleLayout {
  std::uint64_t sample_type = 0;
  bool id_all = false;
  std::uint64_t branch_sample_type = 0;
};

/// The trailer of records that are no samples (sample_id_all), or the same fields of a sample.
struct SampleId {
  std::optional<std::uint32_t> pid;
  std::optional<std::uint32_t> tid;
  std::optional<std::uint64_t> time;
  std::optional<std::uint64_t> id;
  std::optional<std::uint32_t> cpu;
};

struct LostRecord {
  std::uint64_t id = 0;  ///< Of whoever wrote the record, not of who lost.
  std::uint64_t count = 0;
};
struct LostSamplesRecord {
  std::uint64_t count = 0;
};
struct AuxRecord {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  std::uint64_t flags = 0;
};
struct ItraceStartRecord {
  std::uint32_t pid = 0;
  std::uint32_t tid = 0;
};
/// Throttling begins or ends.
struct ThrottleRecord {
  bool begins = false;
};
struct SwitchRecord {
  bool departs = false;
  bool preempted = false;
};
/// The thread ended (EXIT), when the event asked for that.
struct ExitRecord {
  std::uint32_t pid = 0;
  std::uint32_t tid = 0;
};
struct SampleRecord {
  std::uint64_t ip = 0;
  std::uint64_t addr = 0;
  /// 24 bytes each, newest first.
  std::span<const std::uint8_t> branches;
};
/// Of no interest here.
struct OtherRecord {};
/// Too short for its type.
struct BrokenRecord {};

using RecordBody =
    std::variant<OtherRecord, BrokenRecord, LostRecord, LostSamplesRecord, AuxRecord,
                 ItraceStartRecord, ThrottleRecord, SwitchRecord, ExitRecord, SampleRecord>;
struct ParsedRecord {
  RecordBody body;
  SampleId sample;
};

[[nodiscard]] ParsedRecord parse_record(const RecordView& record, const SampleLayout& layout);

/// A sample of an event that has nothing but IP and ADDR, which is what branches come in: without
/// taking records apart in general. Nothing when it is another record.
[[nodiscard]] inline std::optional<std::pair<std::uint64_t, std::uint64_t>> plain_sample(
    const RecordView& record, const SampleLayout& layout) {
  if (record.type != RecordType::kSample || layout.sample_type != (kSampleIp | kSampleAddr) ||
      record.body.size() != 16) {
    return std::nullopt;
  }
  return std::pair{load_le<std::uint64_t>(record.body, 0), load_le<std::uint64_t>(record.body, 8)};
}

/// One entry of a branch stack.
struct BranchEntry {
  std::uint64_t from = 0;
  std::uint64_t to = 0;
  std::uint64_t bits = 0;

  [[nodiscard]] bool mispredicted() const { return (bits & 1U) != 0; }
  [[nodiscard]] bool predicted() const { return (bits & 2U) != 0; }
  /// 1 = executed on a wrong path: it never happened.
  [[nodiscard]] unsigned speculation() const { return static_cast<unsigned>(bits >> 24U) & 3U; }
};
[[nodiscard]] BranchEntry read_branch_entry(std::span<const std::uint8_t> branches,
                                            std::size_t number);

}  // namespace backtrail::decoder::perf
