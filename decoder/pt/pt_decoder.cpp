// SPDX-License-Identifier: Apache-2.0
#include "decoder/pt/pt_decoder.hpp"

#include <algorithm>

#include "decoder/pt/flow_decoder.hpp"
#include "decoder/pt/ipt_pass.hpp"

namespace backtrail::decoder {
namespace {

class Append : public TraceConsumer {
 public:
  explicit Append(std::vector<Record>& out) : out_{out} {}
  void consume(std::span<const Record> records) override {
    out_.insert(out_.end(), records.begin(), records.end());
  }

 private:
  std::vector<Record>& out_;
};

/// Returns true if libipt's result from a checkpoint on would be the same if it had begun earlier.
/// When it begins in the middle of a run it lacks earlier calls. CPUs do not refer to calls before
/// a PSB; damaged packets may, and libipt then fails where FlowDecoder continued, or later.
bool confirms(const IptPass& libipt, std::span<const Record> found, const FlowDecoder& flow,
              std::span<const Record> ours) {
  constexpr std::size_t kSamePlace = 32;
  const auto failed_at = libipt.failed_at();
  if (failed_at && (found.size() < ours.size() || *failed_at > flow.at() + kSamePlace)) {
    return false;
  }
  const std::size_t common = std::min(found.size(), ours.size());
  return std::equal(ours.begin(), ours.begin() + static_cast<std::ptrdiff_t>(common),
                    found.begin());
}

/// Lets libipt decode what FlowDecoder could not, and a little before it. Returns where FlowDecoder
/// can continue.
std::optional<std::size_t> help(IptPass& ipt, const FlowDecoder& flow,
                                const FlowDecoder::Checkpoint& begin, PtPlace& place,
                                RecordBatch& batch) {
  const FlowDecoder::Checkpoint& checkpoint = flow.checkpoint();
  const std::vector<Record> ours = batch.take_back(checkpoint.records);
  std::vector<Record> found;
  place = checkpoint.place;
  auto next = ipt.run(checkpoint.offset, place, found);
  if (!confirms(ipt, found, flow, ours) && checkpoint.offset != begin.offset) {
    found.clear();
    place = begin.place;
    next = ipt.run(begin.offset, place, found);
    (void)batch.take_back(begin.records);
    // Records already passed on stay unchanged.
    const std::size_t told = batch.position() - begin.records;
    found.erase(found.begin(),
                found.begin() + static_cast<std::ptrdiff_t>(std::min(told, found.size())));
  }
  batch.append(found);
  batch.hand_on(0);
  return next;
}

}  // namespace

PtDecoder::PtDecoder(InsnCache& insns, std::optional<CpuIdentity> cpu)
    : insns_{insns},
      cpu_{cpu},
      errata_{cpu ? pt_errata_of(*cpu) : PtErrata{}},
      code_{std::make_unique<LockedCode>(insns.code())},
      graph_{std::make_unique<FlowGraph>(*code_)} {
  use_threads(PtThreads::for_this_machine());
}

void PtDecoder::use_threads(PtThreads threads) {
  team_ = std::make_unique<FlowTeam>(*code_, *graph_, errata_, threads);
}

bool PtDecoder::decode(std::span<const std::uint8_t> packets, std::vector<Record>& out) {
  Append append{out};
  return decode(packets, append);
}

bool PtDecoder::decode(std::span<const std::uint8_t> packets, TraceConsumer& consumer) {
  graph_->refresh();
  RecordBatch batch{consumer};
  FlowDecoder flow{*graph_, errata_, packets, batch};
  std::optional<IptPass> ipt;  // Created when needed.
  PtPlace place;
  auto at = find_psb(packets);
  while (at) {
    const FlowDecoder::Checkpoint begin{*at, place, batch.position()};
    if (!alone_ && team_->is_for(packets.size() - *at)) {
      batch.flush();
      if (const auto end = team_->run(packets, *at, begin.place, batch)) {
        place = *end;
        break;
      }
      batch.go_back(begin.records);
    }
    if (!alone_ && flow.run(*at, place)) {
      place = flow.stop().place;
      break;
    }
    if (alone_) flow.skip(begin);
    if (!ipt) ipt.emplace(insns_, packets, cpu_, files_);
    ++times_helped_;
    at = help(*ipt, flow, begin, place, batch);
  }
  batch.flush();
  return place.finished();
}

}  // namespace backtrail::decoder
