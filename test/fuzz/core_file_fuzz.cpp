// SPDX-License-Identifier: Apache-2.0
// Reads untrusted core files as far as possible.
#include <array>
#include <cstdint>
#include <vector>

#include "decoder/corefile/core_file.hpp"
#include "decoder/corefile/trace_archive.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace backtrail::decoder;
  const std::span input{data, size};
  std::vector<Record> records;
  for (const TraceBlock& block : scan_blocks(input).blocks) (void)decode_block(block, records);
  const auto core = CoreFile::parse(input);
  if (!core) return 0;
  std::array<std::uint8_t, 256> out{};
  for (const CoreSegment& segment : core->segments()) {
    (void)core->read(segment.start, out);
    (void)core->segment_at(segment.start);
    (void)core->mapping_at(segment.start);
  }
  const TraceArchive archive{*core};
  (void)archive.names();
  for (const auto& [tid, thread] : archive.threads()) (void)archive.load(tid, 1000);
  return 0;
}
