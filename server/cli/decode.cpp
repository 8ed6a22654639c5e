// SPDX-License-Identifier: Apache-2.0
#include "server/cli/decode.hpp"

#include <algorithm>
#include <cstdio>
#include <vector>

#include <fmt/format.h>

#include "arch/base/bytes.hpp"
#include "arch/base/file_bytes.hpp"
#include "decoder/bts/ds_dump.hpp"
#include "decoder/file/perf_data.hpp"
#include "decoder/perf/perf_abi.hpp"
#include "decoder/pt/pt_scanner.hpp"
#include "server/cli/cli_words.hpp"
#include "server/cli/tail.hpp"
#include "server/crash/crash_source.hpp"
#include "server/target/tail_server.hpp"

namespace backtrail::server {
namespace {

using arch::x86::BtsEntry;
using arch::x86::BtsQualifier;
using Bytes = std::span<const std::uint8_t>;

void append_entry(const BtsEntry& entry, std::string& out) {
  switch (entry.qualifier) {
    case BtsQualifier::kBranch:
      out += fmt::format("branch  {:#x} -> {:#x}{}\n", entry.from, entry.to,
                         !entry.predicted   ? ""
                         : *entry.predicted ? "  predicted"
                                            : "  mispredicted");
      return;
    case BtsQualifier::kTaskArrives:
      out += fmt::format("arrives at {}\n", entry.timestamp);
      return;
    case BtsQualifier::kTaskDeparts:
      out += fmt::format("departs at {}\n", entry.timestamp);
      return;
    case BtsQualifier::kInvalid:
      out += "invalid record\n";
      return;
  }
}

Result<std::string> ds_text(Bytes bytes, const DecodeOptions& options) {
  BT_TRY(const decoder::DsDump dump,
         decoder::read_ds_dump(bytes, {*options.ds_format, options.base, options.all}));
  const auto& bts = dump.area.bts;
  std::string out = fmt::format(
      "debug store ({}): BTS buffer {:#x} to {:#x}, next record at {:#x}, interrupt at {:#x}\n",
      to_string(*options.ds_format), bts.base, bts.maximum, bts.index, bts.threshold);
  if (dump.missing_bytes != 0)
    out += fmt::format("the last {} bytes of the buffer are not in the file\n", dump.missing_bytes);
  out += fmt::format("{} records, oldest first{}\n", dump.entries.size(),
                     dump.wrapped ? ", including those after the next record" : "");
  for (const BtsEntry& entry : dump.entries) append_entry(entry, out);
  if (dump.entries.empty() && !options.all)
    out += "the system empties the buffer often; --all shows the records left after the pointer\n";
  return out;
}

void append_counts(const decoder::PtCounts& counts, std::string& out) {
  for (std::size_t i = 0; i < decoder::kPtKinds; ++i) {
    if (counts.packets[i] == 0) continue;
    out +=
        fmt::format("  {:<8} {}\n", to_string(static_cast<decoder::PtKind>(i)), counts.packets[i]);
  }
  if (counts.errors != 0)
    out += fmt::format("  {} places hold no packets; decoding went on at the next PSB\n",
                       counts.errors);
  if (counts.skipped_bytes != 0)
    out += fmt::format("  {} bytes skipped before a PSB\n", counts.skipped_bytes);
}

void append_records(Bytes bytes, std::string& out) {
  for (; bytes.size() >= decoder::perf::kBtsRecordBytes;
       bytes = bytes.subspan(decoder::perf::kBtsRecordBytes)) {
    const auto from = load_le<std::uint64_t>(bytes, 0);
    const auto target = load_le<std::uint64_t>(bytes, 8);
    if (from != 0) out += fmt::format("branch  {:#x} -> {:#x}\n", from, target);
  }
}

std::string_view kind_name(decoder::AuxTraceKind kind) {
  switch (kind) {
    case decoder::AuxTraceKind::kIntelPt:
      return "Intel PT";
    case decoder::AuxTraceKind::kIntelBts:
      return "Intel BTS";
    case decoder::AuxTraceKind::kNone:
      break;
  }
  return "no known hardware trace";
}

std::string block_line(const decoder::AuxTraceBlock& block) {
  std::string out =
      block.cpu == ~std::uint32_t{0} ? std::string{"any cpu"} : fmt::format("cpu {}", block.cpu);
  if (block.tid != ~std::uint32_t{0}) out += fmt::format(", tid {}", block.tid);
  out += fmt::format(": {} bytes at {:#x}", block.bytes.size(), block.offset);
  if (block.repeated_bytes != 0)
    out += fmt::format(", {} more repeat the previous snapshot", block.repeated_bytes);
  if (block.missing_bytes != 0) out += fmt::format(", {} more are cut off", block.missing_bytes);
  return out + "\n";
}

Result<std::string> perf_text(Bytes bytes) {
  BT_TRY(const decoder::PerfDataFile file, decoder::read_perf_data(bytes));
  std::string out = fmt::format("perf.data: {}{}, {} records\n", kind_name(file.aux_kind),
                                file.snapshot ? " in snapshots" : "", file.records);
  if (!file.cpuid.empty()) out += fmt::format("cpu: {}\n", file.cpuid);
  out += fmt::format("AUX records: {}, {} bytes, {} truncated; {} records lost\n", file.aux_records,
                     file.aux_record_bytes, file.aux_truncated, file.lost);
  for (const decoder::AuxTraceBlock& block : file.blocks) {
    out += block_line(block);
    if (file.aux_kind == decoder::AuxTraceKind::kIntelPt)
      append_counts(decoder::count_packets(block.bytes), out);
    if (file.aux_kind == decoder::AuxTraceKind::kIntelBts) append_records(block.bytes, out);
  }
  if (file.compressed) out += "some records are compressed and were not read\n";
  if (file.missing_bytes != 0)
    out +=
        fmt::format("the last {} bytes of the records are not in the file\n", file.missing_bytes);
  if (file.broken_at)
    out += fmt::format("no valid records from offset {:#x} on\n", *file.broken_at);
  return out;
}

}  // namespace

Result<std::string> decode_text(Bytes bytes, const DecodeOptions& options) {
  if (options.ds_format) return ds_text(bytes, options);
  const bool of_tail = bytes.size() >= kTailGreeting.size() &&
                       std::equal(kTailGreeting.begin(), kTailGreeting.end(), bytes.begin());
  return of_tail ? tail_file_text(bytes) : perf_text(bytes);
}

int run_decode(const DecodeOptions& options) {
  const auto bytes = file_bytes(options.file);
  if (!bytes) return fail_with(cannot_read(options.file, bytes.error()));
  if (bytes->empty()) return fail_with(cannot_read(options.file, "the file is empty"));
  const auto text = decode_text(*bytes, options);
  if (!text) return fail_with(cannot_read(options.file, text.error()));
  std::fwrite(text->data(), 1, text->size(), stdout);
  return 0;
}

}  // namespace backtrail::server
