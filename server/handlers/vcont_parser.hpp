// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Parses the vCont packet.

#include <optional>
#include <string_view>
#include <vector>

#include "ptrace/tracee/resume_action.hpp"
#include "server/session/thread_pattern.hpp"

namespace backtrail::server::handlers {

struct VContAction {
  tracee::ResumeAction action;
  ThreadPattern threads;
};

/// Parses the text after "vCont;". The first action that matches a thread applies to it. The action
/// without a thread applies to all others and is put last. nullopt if the text is malformed or
/// names a signal that Linux does not have.
[[nodiscard]] std::optional<std::vector<VContAction>> parse_vcont(std::string_view text);

/// Returns the action for one thread, or null.
[[nodiscard]] const tracee::ResumeAction* action_for(const std::vector<VContAction>& actions,
                                                     tracee::ThreadId thread);

}  // namespace backtrail::server::handlers
