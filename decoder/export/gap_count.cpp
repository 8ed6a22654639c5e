// SPDX-License-Identifier: Apache-2.0
#include "decoder/export/gap_count.hpp"

#include <fmt/format.h>

namespace backtrail::decoder {

void GapCount::see(std::span<const Record> records) {
  for (const Record& record : records) {
    ++records_;
    if (record.kind != RecordKind::kGap || records_ == 1) continue;
    gaps_.push_back({record, records_});
    if (record.reason != GapReason::kOverflow) continue;
    if (record.bound != LossBound::kBatches) lost_ += record.payload;
    if (record.bound != LossBound::kExact || record.payload == 0) is_exact_ = false;
  }
}

std::string GapCount::title() const {
  if (gaps_.empty()) return {};
  std::string out = fmt::format(" ({} gap{}", gaps_.size(), gaps_.size() == 1 ? "" : "s");
  if (lost_ != 0 || !is_exact_) {
    out += fmt::format(", {}{} branches missing", is_exact_ ? "" : "at least ", lost_);
  }
  return out + ")";
}

}  // namespace backtrail::decoder
