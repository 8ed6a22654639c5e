// SPDX-License-Identifier: Apache-2.0
#include "decoder/report/failure_scan.hpp"

#include <algorithm>

namespace backtrail::decoder {

std::uint64_t FailureScan::take(std::uint32_t tid) {
  const TraceArchive::Thread* thread = archive_.find(tid);
  const std::uint64_t most = std::min(kMostOfThread, left_);
  left_ -= thread == nullptr ? 0 : std::min(most, thread->records);
  return most;
}

std::uint64_t FailureScan::records_since(std::uint32_t tid, FailureSign least) {
  const std::uint64_t most = take(tid);
  return most == 0 ? 0 : records_since_failure(archive_, tid, most, least, symbols_);
}

unsigned FailureScan::weight(std::uint32_t tid) {
  const std::uint64_t most = take(tid);
  return most == 0 ? 0 : failure_weight(archive_, tid, most, symbols_);
}

}  // namespace backtrail::decoder
