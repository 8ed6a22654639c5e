// SPDX-License-Identifier: Apache-2.0
#include "server/session/thread_pattern.hpp"

#include <limits>

#include <fmt/compile.h>
#include <fmt/format.h>

namespace backtrail::server {
namespace {

/// Takes -1, 0 or a positive id.
std::optional<pid_t> take_id(PacketText& text) {
  if (text.take("-1")) return ThreadPattern::kAll;
  const auto value = text.take_hex();
  if (!value || *value > std::numeric_limits<pid_t>::max()) return std::nullopt;
  return static_cast<pid_t>(*value);
}

}  // namespace

std::optional<ThreadPattern> take_thread_pattern(PacketText& text) {
  if (!text.take('p')) {
    const auto tid = take_id(text);
    if (!tid) return std::nullopt;
    return ThreadPattern{ThreadPattern::kAny, *tid};
  }
  const auto pid = take_id(text);
  if (!pid) return std::nullopt;
  if (!text.take('.')) return ThreadPattern{*pid, ThreadPattern::kAll};
  const auto tid = take_id(text);
  if (!tid) return std::nullopt;
  return ThreadPattern{*pid, *tid};
}

std::optional<pid_t> take_pid(PacketText& text) {
  const auto value = text.take_hex();
  if (!value || *value == 0 || *value > std::numeric_limits<pid_t>::max()) return std::nullopt;
  return static_cast<pid_t>(*value);
}

std::string format_thread(tracee::ThreadId thread, bool multiprocess) {
  if (multiprocess) return fmt::format(FMT_COMPILE("p{:x}.{:x}"), thread.pid, thread.tid);
  return fmt::format("{:x}", thread.tid);
}

}  // namespace backtrail::server
