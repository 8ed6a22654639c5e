// SPDX-License-Identifier: Apache-2.0
#include "server/session/stop_reply.hpp"

#include <csignal>
#include <cstdint>
#include <iterator>

#include <fmt/compile.h>
#include <fmt/format.h>

#include "server/rsp/gdb_signals.hpp"
#include "server/rsp/hex.hpp"

namespace backtrail::server {
namespace {

using tracee::StopEvent;
using tracee::StopKind;

int gdb_signal_of(const StopEvent& event) {
  switch (event.kind) {
    case StopKind::kSignal:
      return to_gdb_signal(event.signal);
    case StopKind::kStopped:
      return 0;
    default:
      return kGdbSignalTrap;
  }
}

/// Numbers may be negative: the kernel says -1 at the return of rt_sigreturn(). gdb reads 32 bits
/// and no sign.
std::uint32_t wire_number(std::int64_t syscall) {
  return static_cast<std::uint32_t>(syscall);
}

/// Returns the field that names the event; empty if the signal says it all.
std::string event_field(const SessionContext& context, const StopEvent& event) {
  switch (event.kind) {
    case StopKind::kFork:
      return fmt::format("fork:{};", context.format(event.child));
    case StopKind::kVfork:
      return fmt::format("vfork:{};", context.format(event.child));
    case StopKind::kVforkDone:
      return "vforkdone:;";
    case StopKind::kExec:
      return fmt::format("exec:{};", rsp::to_hex(std::string_view{event.exec_path}));
    case StopKind::kSyscallEntry:
      return fmt::format("syscall_entry:{:x};", wire_number(event.syscall));
    case StopKind::kSyscallReturn:
      return fmt::format("syscall_return:{:x};", wire_number(event.syscall));
    case StopKind::kThreadCloned:
      return fmt::format("clone:{};", context.format(event.child));
    case StopKind::kThreadCreated:
      return "create:;";
    case StopKind::kWatchpoint:
      return fmt::format("watch:{:016x};", event.address.value());
    case StopKind::kSoftwareBreakpoint:
      return context.client.swbreak ? "swbreak:;" : "";
    case StopKind::kHardwareBreakpoint:
      return context.client.hwbreak ? "hwbreak:;" : "";
    case StopKind::kHistoryBegin:
      return "replaylog:begin;";
    case StopKind::kHistoryEnd:
      return "replaylog:end;";
    default:
      return "";
  }
}

void append_registers(const SessionContext& context, ThreadId thread, std::string& out) {
  const auto set = context.target.register_set(thread.pid);
  if (!set) return;
  const auto raw = context.target.read_general_registers(thread);
  if (!raw) return;
  const KnownRegisters known = context.target.known_registers(thread);
  for (const std::size_t number : (*set)->expedited()) {
    if (!known.has(number)) continue;
    const auto value = (*set)->read_one(number, *raw);
    if (!value) continue;
    fmt::format_to(std::back_inserter(out), FMT_COMPILE("{:02x}:{};"), number, rsp::to_hex(*value));
  }
}

/// Says the code in two digits: lldb reads 0 from one, which gdbserver sends.
std::string process_end(const SessionContext& context, char letter, int code, pid_t pid) {
  const auto low = static_cast<unsigned>(code) & 0xffU;
  if (context.client.multiprocess) return fmt::format("{}{:02x};process:{:x}", letter, low, pid);
  return fmt::format("{}{:02x}", letter, low);
}

}  // namespace

std::string stop_reply(const SessionContext& context, const StopEvent& event) {
  switch (event.kind) {
    case StopKind::kProcessExited:
      return process_end(context, 'W', event.exit_code, event.thread.pid);
    case StopKind::kProcessSignalled:
      return process_end(context, 'X', to_gdb_signal(event.signal), event.thread.pid);
    case StopKind::kThreadExited:
      return fmt::format("w{:02x};{}", event.exit_code, context.format(event.thread));
    case StopKind::kNoResumed:
      return context.client.no_resumed ? "N"
                                       : rsp::error_text_reply("No unwaited-for children left.");
    default:
      break;
  }
  if (context.disabled("T") && event.kind == StopKind::kSignal) {
    return fmt::format("S{:02x}", gdb_signal_of(event));
  }
  std::string out = fmt::format(FMT_COMPILE("T{:02x}"), gdb_signal_of(event));
  out += event_field(context, event);
  append_registers(context, event.thread, out);
  if (!context.disabled("Tthread")) {
    const auto end = std::back_inserter(out);
    fmt::format_to(end, FMT_COMPILE("thread:{};"), context.format(event.thread));
    const int core = context.target.core(event.thread);
    if (core >= 0) fmt::format_to(end, FMT_COMPILE("core:{:x};"), core);
  }
  return out;
}

StopEvent as_fresh_stop(StopEvent event) {
  const bool plain = event.kind == StopKind::kStopped ||
                     (event.kind == StopKind::kSignal && event.signal == SIGSTOP);
  if (plain) {
    event.kind = StopKind::kSignal;
    event.signal = SIGTRAP;
  }
  return event;
}

}  // namespace backtrail::server
