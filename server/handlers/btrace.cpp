// SPDX-License-Identifier: Apache-2.0
// Qbtrace and Qbtrace-conf: turn branch tracing on and off.

#include <algorithm>
#include <array>
#include <limits>

#include "server/handlers/btrace_errors.hpp"
#include "server/handlers/handlers.hpp"
#include "server/session/packet_text.hpp"

namespace backtrail::server::handlers {
namespace {

using tracee::TraceConfig;
using tracee::TraceFormat;

/// Returns true if a thread of the process is in the past, where its registers are not those that
/// gdb's own history ends with.
bool is_in_past(SessionContext& context, pid_t pid) {
  const PastControl* past = context.target.past_control();
  return past != nullptr &&
         std::ranges::any_of(context.target.thread_ids(pid),
                             [past](ThreadId thread) { return past->in_past(thread); });
}

/// Errors have a text ("E.text") because gdb shows it to its user.
Reply enable(SessionContext& context, BranchTracing& tracing, TraceFormat format) {
  const auto thread = context.selected_thread();
  if (!thread) return Reply::error(btrace_error::kNoThread);
  if (is_in_past(context, thread->pid)) return Reply::error(btrace_error::kInPast);
  const TraceConfig config{format, format == TraceFormat::kPt ? context.state.pt_size_bytes
                                                              : context.state.bts_size_bytes};
  const auto done = tracing.enable(*thread, config);
  if (done) return Reply::ok();
  if (done.error().is(TraceErrc::kAlreadyEnabled)) {
    return Reply::error(btrace_error::kAlreadyEnabled);
  }
  if (done.error().is(TraceErrc::kNotFound)) return Reply::error(btrace_error::kNoThread);
  return Reply::error(tracing.why_not_enabled(done.error()));
}

Reply disable(SessionContext& context, BranchTracing& tracing) {
  const auto thread = context.selected_thread();
  if (!thread) return Reply::error(btrace_error::kNoThread);
  const auto done = tracing.disable(*thread);
  if (done) return Reply::ok();
  if (done.error().is(TraceErrc::kNotEnabled)) {
    return Reply::error("Branch tracing not enabled.");
  }
  return Reply::error("Could not disable branch tracing.");
}

Reply switch_tracing(SessionContext& context, std::string_view arguments) {
  BranchTracing* tracing = context.target.branch_tracing();
  if (tracing == nullptr) return Reply::unknown();
  if (arguments == "bts") return enable(context, *tracing, TraceFormat::kBts);
  if (arguments == "pt") return enable(context, *tracing, TraceFormat::kPt);
  if (arguments == "off") return disable(context, *tracing);
  return Reply::error("Bad Qbtrace operation.  Use bts, pt, or off.");
}

/// Sets a buffer size, which takes effect at the next enable of any thread. 0xffffffff is gdb's
/// "unlimited".
Reply configure(SessionContext& context, std::string_view arguments) {
  if (context.target.branch_tracing() == nullptr) return Reply::unknown();
  PacketText text{arguments};
  std::uint64_t* size = nullptr;
  if (text.take("bts:size=")) {
    size = &context.state.bts_size_bytes;
  } else if (text.take("pt:size=")) {
    size = &context.state.pt_size_bytes;
  } else {
    return Reply::error("Bad Qbtrace configuration option.");
  }
  const auto value = text.take_prefixed_hex();
  if (!value || !text.at_end() || *value > std::numeric_limits<std::uint32_t>::max()) {
    return Reply::error("Bad size value.");
  }
  *size = *value;
  return Reply::ok();
}

constexpr std::array kBtracePackets = {
    PacketEntry{"Qbtrace:", PacketMatch::kPrefix, switch_tracing},
    PacketEntry{"Qbtrace-conf:", PacketMatch::kPrefix, configure},
};

}  // namespace

std::span<const PacketEntry> btrace_packets() {
  return kBtracePackets;
}

}  // namespace backtrail::server::handlers
