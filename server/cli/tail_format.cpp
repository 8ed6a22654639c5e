// SPDX-License-Identifier: Apache-2.0
// Reads a tail server's stream and formats its items.

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "arch/base/bytes.hpp"
#include "decoder/report/report_rows.hpp"
#include "server/cli/tail.hpp"
#include "server/target/tail_server.hpp"

namespace backtrail::server {
namespace {

constexpr std::size_t kMostInAFrame = 4096;

decoder::Record read_record(const std::uint8_t* at) {
  return {TraceeAddr{load_le<std::uint64_t>(at)},   TraceeAddr{load_le<std::uint64_t>(at + 8)},
          static_cast<decoder::RecordKind>(at[16]), static_cast<decoder::GapReason>(at[17]),
          static_cast<decoder::LossBound>(at[18]),  load_le<std::uint32_t>(at + 20)};
}

std::string perf_script_line(const TailReader::Item& item) {
  const auto& record = item.record;
  if (record && record->kind != decoder::RecordKind::kGap && item.lost == 0) {
    return fmt::format("{:5}/{:<5}  {:16x} => {:16x}\n", item.pid, item.tid, record->from.value(),
                       record->to.value());
  }
  TailReader::Item news = item;
  news.lost = 0;
  std::string out;
  if (item.lost != 0)
    out = fmt::format("# {} {} records lost here: too slow\n", item.tid, item.lost);
  if (record && record->kind != decoder::RecordKind::kGap) return out + perf_script_line(news);
  const std::string words = tail_line(news);
  return words.empty() ? out : out + "# " + words;
}

}  // namespace

std::vector<TailReader::Item> TailReader::add(std::span<const std::uint8_t> bytes) {
  std::vector<Item> out;
  if (broken_) return out;
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  std::size_t at = 0;
  if (!greeted_) {
    if (bytes_.size() < kTailGreeting.size()) return out;
    if (!std::equal(kTailGreeting.begin(), kTailGreeting.end(), bytes_.begin())) {
      broken_ = true;
      return out;
    }
    greeted_ = true;
    at = kTailGreeting.size();
  }
  while (bytes_.size() - at >= kTailFrameBytes) {
    const std::uint8_t* header = bytes_.data() + at;
    const std::size_t count = load_le<std::uint32_t>(header + 8);
    if (bytes_.size() - at - kTailFrameBytes < count * kTailRecordBytes) break;
    TailReader::Item item{static_cast<pid_t>(load_le<std::uint32_t>(header)),
                          static_cast<pid_t>(load_le<std::uint32_t>(header + 4)),
                          load_le<std::uint64_t>(header + 16), std::nullopt,
                          static_cast<TailNews>(load_le<std::uint32_t>(header + 12))};
    if (count == 0) out.push_back(item);
    for (std::size_t i = 0; i < count; ++i, item.lost = 0) {
      item.record = read_record(header + kTailFrameBytes + i * kTailRecordBytes);
      out.push_back(item);
    }
    at += kTailFrameBytes + count * kTailRecordBytes;
  }
  bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(at));
  return out;
}

std::string tail_line(const TailReader::Item& item) {
  std::string out;
  if (item.lost != 0) out = fmt::format("{} {} records lost here: too slow\n", item.tid, item.lost);
  if (item.news == TailNews::kThreadEnded) out += fmt::format("{} ended\n", item.tid);
  if (!item.record) return out;
  const decoder::Record& record = *item.record;
  switch (record.kind) {
    case decoder::RecordKind::kBranch:
      return out + fmt::format("{} branch {} -> {}\n", item.tid, record.from, record.to);
    case decoder::RecordKind::kAsync:
      return out + fmt::format("{} signal {} -> {}\n", item.tid, record.from, record.to);
    case decoder::RecordKind::kGap:
      break;
  }
  if (record.reason == decoder::GapReason::kStart) {
    return out + fmt::format("{} start -> {}\n", item.tid, record.to);
  }
  return out + fmt::format("{} gap -> {}: {}\n", item.tid, record.to, decoder::gap_text(record));
}

void TailWriter::end_frame() {
  if (frame_.empty() && first_.lost == 0 && first_.news == TailNews::kNone) return;
  std::vector<std::uint8_t> bytes;
  append_tail_frame({first_.pid, first_.tid}, frame_, first_.lost, first_.news, bytes);
  out_.append(bytes.begin(), bytes.end());
  frame_.clear();
  first_ = {};
}

void TailWriter::add(const TailReader::Item& item) {
  switch (format_) {
    case TailFormat::kText:
      out_ += tail_line(item);
      return;
    case TailFormat::kPerfScript:
      out_ += perf_script_line(item);
      return;
    case TailFormat::kRaw:
      break;
  }
  const bool goes_on = !frame_.empty() && frame_.size() < kMostInAFrame && item.record &&
                       item.lost == 0 && first_.pid == item.pid && first_.tid == item.tid;
  if (!goes_on) {
    end_frame();
    first_ = item;
  }
  if (item.record) frame_.push_back(*item.record);
}

std::string TailWriter::take() {
  if (format_ == TailFormat::kRaw) {
    if (!std::exchange(greeted_, true)) out_.insert(0, kTailGreeting);
    end_frame();
  }
  return std::exchange(out_, {});
}

Result<std::string> tail_file_text(std::span<const std::uint8_t> bytes) {
  TailReader reader;
  std::string out;
  for (const TailReader::Item& item : reader.add(bytes)) out += tail_line(item);
  if (reader.broken() || !reader.greeted()) {
    return fail(TraceErrc::kMalformed, "read what a tail has written");
  }
  if (reader.waiting() != 0) {
    out += fmt::format("the file ends within a record: {} bytes are left\n", reader.waiting());
  }
  return out;
}

}  // namespace backtrail::server
