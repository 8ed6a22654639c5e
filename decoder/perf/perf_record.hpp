// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Parses one record of perf's data ring.

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <variant>

#include "arch/base/bytes.hpp"
#include "decoder/perf/perf_abi.hpp"

namespace backtrail::decoder::perf {

/// The bytes of a record; valid during the visit.
struct RecordView {
  RecordType type{};
  std::uint16_t misc = 0;
  std::span<const std::uint8_t> body;  ///< Without the header.
};

/// The event's attributes that determine which fields records have.
struct SampleLayout {
  std::uint64_t sample_type = 0;
  bool id_all = false;
  std::uint64_t branch_sample_type = 0;
};

/// The trailer of records other than samples (sample_id_all), or the same fields of a sample.
struct SampleId {
  std::optional<std::uint32_t> pid;
  std::optional<std::uint32_t> tid;
  std::optional<std::uint64_t> time;
  std::optional<std::uint64_t> id;
  std::optional<std::uint32_t> cpu;
};

struct LostRecord {
  /// Id of the event whose record this is, not of the one that lost records.
  std::uint64_t id = 0;
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
/// Throttling began or ended.
struct ThrottleRecord {
  bool begins = false;
};
struct SwitchRecord {
  bool departs = false;
  bool preempted = false;
};
/// The thread ended (EXIT); present if the event asked for it.
struct ExitRecord {
  std::uint32_t pid = 0;
  std::uint32_t tid = 0;
};
struct SampleRecord {
  std::uint64_t ip = 0;
  std::uint64_t addr = 0;
  /// Entries of 24 bytes each, newest first.
  std::span<const std::uint8_t> branches;
};
/// A type that is not needed.
struct OtherRecord {};
/// A record too short for its type.
struct BrokenRecord {};

using RecordBody =
    std::variant<OtherRecord, BrokenRecord, LostRecord, LostSamplesRecord, AuxRecord,
                 ItraceStartRecord, ThrottleRecord, SwitchRecord, ExitRecord, SampleRecord>;
struct ParsedRecord {
  RecordBody body;
  SampleId sample;
};

[[nodiscard]] ParsedRecord parse_record(const RecordView& record, const SampleLayout& layout);

/// Returns ip and addr of a sample that has only these, which is how BTS branches arrive, without
/// general parsing; nullopt for other records.
[[nodiscard]] inline std::optional<std::pair<std::uint64_t, std::uint64_t>> plain_sample(
    const RecordView& record, const SampleLayout& layout) {
  if (record.type != RecordType::kSample || layout.sample_type != (kSampleIp | kSampleAddr) ||
      record.body.size() != 16) {
    return std::nullopt;
  }
  return std::pair{load_le<std::uint64_t>(record.body, 0), load_le<std::uint64_t>(record.body, 8)};
}

/// An entry of a branch stack.
struct BranchEntry {
  std::uint64_t from = 0;
  std::uint64_t to = 0;
  std::uint64_t bits = 0;

  [[nodiscard]] bool mispredicted() const { return (bits & 1U) != 0; }
  [[nodiscard]] bool predicted() const { return (bits & 2U) != 0; }
  /// Returns the speculation state; 1 if it ran on a wrong path and never took effect.
  [[nodiscard]] unsigned speculation() const { return static_cast<unsigned>(bits >> 24U) & 3U; }
};
[[nodiscard]] BranchEntry read_branch_entry(std::span<const std::uint8_t> branches,
                                            std::size_t number);

}  // namespace backtrail::decoder::perf
