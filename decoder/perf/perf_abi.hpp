// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Constants of <linux/perf_event.h>, repeated here because decoders also read recorded files and
/// do not depend on the kernel's headers.

#include <cstdint>

namespace backtrail::decoder::perf {

enum class RecordType : std::uint32_t {
  kMmap = 1,
  kLost = 2,
  kComm = 3,
  kExit = 4,
  kThrottle = 5,
  kUnthrottle = 6,
  kFork = 7,
  kSample = 9,
  kMmap2 = 10,
  kAux = 11,
  kItraceStart = 12,
  kLostSamples = 13,
  kSwitch = 14,
  kSwitchCpuWide = 15,
  kAuxOutputHwId = 21,
  // From 64 on: types of the recording program.
  kHeaderAttr = 64,
  kTracingData = 66,
  kFinishedRound = 68,
  kAuxtraceInfo = 70,
  kAuxtrace = 71,
  kFeature = 80,
  kCompressed = 81,
  kCompressed2 = 83,
};

/// Size of a record's header: type (32 bits), misc (16), size of the whole record (16).
inline constexpr std::size_t kHeaderBytes = 8;
/// Size of an AUX record with every optional field, plus a record of losses before it.
inline constexpr std::uint64_t kLargestAuxRecordBytes = 32 + 48 + 24 + 48;
inline constexpr std::uint16_t kMiscSwitchOut = 0x2000;
inline constexpr std::uint16_t kMiscSwitchPreempt = 0x4000;

// Bits of sample_type.
inline constexpr std::uint64_t kSampleIp = 1U << 0U;
inline constexpr std::uint64_t kSampleTid = 1U << 1U;
inline constexpr std::uint64_t kSampleTime = 1U << 2U;
inline constexpr std::uint64_t kSampleAddr = 1U << 3U;
inline constexpr std::uint64_t kSampleId = 1U << 6U;
inline constexpr std::uint64_t kSampleCpu = 1U << 7U;
inline constexpr std::uint64_t kSamplePeriod = 1U << 8U;
inline constexpr std::uint64_t kSampleStreamId = 1U << 9U;
inline constexpr std::uint64_t kSampleBranchStack = 1U << 11U;
inline constexpr std::uint64_t kSampleIdentifier = 1U << 16U;

// Bits of branch_sample_type that change a record's layout.
inline constexpr std::uint64_t kBranchHwIndex = 1U << 17U;
inline constexpr std::uint64_t kBranchCounters = 1U << 19U;

// Flags of an AUX record.
inline constexpr std::uint64_t kAuxTruncated = 1;
inline constexpr std::uint64_t kAuxOverwrite = 2;
inline constexpr std::uint64_t kAuxPartial = 4;
inline constexpr std::uint64_t kAuxCollision = 8;

/// Size of a branch record, as BTS writes it into AUX memory and samples carry it.
inline constexpr std::size_t kBtsRecordBytes = 24;
/// Most records that the kernel takes from its own BTS buffer at once.
inline constexpr std::uint32_t kBtsBatchRecords = 2730;

}  // namespace backtrail::decoder::perf
