// SPDX-License-Identifier: Apache-2.0
// btrace and btrace-conf: branch trace of the selected thread.

#include <iterator>

#include <fmt/compile.h>
#include <fmt/format.h>

#include "server/handlers/btrace_errors.hpp"
#include "server/handlers/qxfer_objects.hpp"

namespace backtrail::server::handlers {
namespace {

using tracee::TraceFormat;

// Characters to reserve for a block: the length of the longest line.
constexpr std::size_t kBlockChars = 62;

tl::unexpected<Reply> no_trace(std::string_view text) {
  return tl::unexpected<Reply>{Reply::error(text)};
}

std::optional<TraceRead> parse_annex(std::string_view annex) {
  if (annex == "all") return TraceRead::kAll;
  if (annex == "new") return TraceRead::kNew;
  if (annex == "delta") return TraceRead::kDelta;
  return std::nullopt;
}

std::string_view error_text(const Error& error) {
  if (error.is(TraceErrc::kNotEnabled)) return btrace_error::kNotEnabled;
  if (error.is(TraceErrc::kOverflow)) return btrace_error::kOverflow;
  if (error.is(TraceErrc::kNotFound)) return btrace_error::kNoThread;
  return btrace_error::kGeneric;
}

/// Appends blocks in the given order, newest first.
void append_trace(const std::vector<decoder::Block>& blocks, std::string& out) {
  out.reserve(out.size() + blocks.size() * kBlockChars + 16);
  for (const decoder::Block& block : blocks) {
    fmt::format_to(std::back_inserter(out), FMT_COMPILE("<block begin=\"{:#x}\" end=\"{:#x}\"/>\n"),
                   block.begin.value(), block.end.value());
  }
}

/// Sends `<cpu>` only with packets that a CPU wrote: the server's own have no errata, and gdb
/// refuses models it does not know. A document without `<raw>` means that nothing is new.
void append_trace(const PtTrace& trace, std::string& out) {
  constexpr char kDigits[] = "0123456789abcdef";
  out += "<pt>\n";
  if (trace.cpu) {
    out += fmt::format(
        "<pt-config>\n<cpu vendor=\"GenuineIntel\" family=\"{}\" model=\"{}\" "
        "stepping=\"{}\"/>\n</pt-config>\n",
        trace.cpu->family, trace.cpu->model, trace.cpu->stepping);
  }
  if (!trace.raw.empty()) {
    out.reserve(out.size() + trace.raw.size() * 2 + 32);
    out += "<raw>";
    for (const std::uint8_t byte : trace.raw) {
      out += kDigits[byte >> 4];
      out += kDigits[byte & 0xf];
    }
    out += "</raw>\n";
  }
  out += "</pt>\n";
}

}  // namespace

Document btrace_document(SessionContext& context, std::string_view annex) {
  BranchTracing& tracing = *context.target.branch_tracing();
  const auto thread = context.selected_thread();
  if (!thread) return no_trace(btrace_error::kNoThread);
  if (!tracing.config(*thread)) return no_trace(btrace_error::kNotEnabled);
  const auto what = parse_annex(annex);
  if (!what) return no_trace(btrace_error::kBadAnnex);
  const auto trace = tracing.read(*thread, *what);
  if (!trace) return no_trace(error_text(trace.error()));
  std::string out = "<!DOCTYPE btrace SYSTEM \"btrace.dtd\">\n<btrace version=\"1.0\">\n";
  std::visit([&out](const auto& form) { append_trace(form, out); }, *trace);
  out += "</btrace>\n";
  return out;
}

Document btrace_conf_document(SessionContext& context, std::string_view annex) {
  if (!annex.empty()) return no_document();
  const auto thread = context.selected_thread();
  if (!thread) return no_trace(btrace_error::kNoThread);
  const auto config = context.target.branch_tracing()->config(*thread);
  if (!config) return no_trace(btrace_error::kNotEnabled);
  return fmt::format(
      "<!DOCTYPE btrace-conf SYSTEM \"btrace-conf.dtd\">\n<btrace-conf version=\"1.0\">\n"
      "<{} size=\"{:#x}\"/>\n</btrace-conf>\n",
      config->format == TraceFormat::kPt ? "pt" : "bts", config->size_bytes);
}

}  // namespace backtrail::server::handlers
