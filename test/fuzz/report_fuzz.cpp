// SPDX-License-Identifier: Apache-2.0
// Makes reports and exports of untrusted crash files. Their paths lead nowhere.
#include <cstdint>
#include <optional>
#include <string_view>

#include "decoder/corefile/core_file.hpp"
#include "decoder/corefile/trace_archive.hpp"
#include "decoder/export/exports.hpp"
#include "decoder/export/html_page.hpp"
#include "decoder/report/report_builder.hpp"
#include "decoder/report/report_text.hpp"
#include "decoder/symbols/symbols.hpp"

namespace {

using namespace backtrail;

/// Reads code from the core itself.
class CoreCode final : public decoder::CodeReader {
 public:
  explicit CoreCode(const decoder::CoreFile& core) : core_{core} {}
  [[nodiscard]] arch::Isa isa() const override { return core_.isa(); }
  std::size_t read_code(TraceeAddr address, std::span<std::uint8_t> out) override {
    return core_.read(address, out);
  }

 private:
  const decoder::CoreFile& core_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto core = decoder::CoreFile::parse({data, size});
  if (!core) return 0;
  const decoder::TraceArchive archive{*core};
  CoreCode code{*core};
  const auto symbols = decoder::make_elf_symbols({});
  constexpr std::uint64_t kBranches = 20'000;
  const decoder::ReportOptions options{.calls = 200, .other_calls = 10, .branches = kBranches};
  const decoder::Report report = decoder::build_report(*core, archive, code, *symbols, options);
  (void)decoder::report_text(report);
  (void)decoder::report_json(report);
  (void)decoder::report_markdown(report, 64U << 10U);
  const decoder::ExportSource source{*core, archive, code, *symbols, kBranches};
  const decoder::TextSink sink = [](std::string_view) {};
  decoder::write_folded(source, sink);
  decoder::write_speedscope(source, sink);
  decoder::write_trace_events(source, sink);
  return 0;
}
