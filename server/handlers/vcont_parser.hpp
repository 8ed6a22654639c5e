#pragma once
/// @file
/// The vCont packet as typed actions.

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

/// Parses what follows "vCont;". The first action that fits a thread is the thread's; the action
/// without a thread, which is for all others, comes last wherever it stood. Nothing when the text
/// is malformed or names a signal that Linux does not have.
[[nodiscard]] std::optional<std::vector<VContAction>> parse_vcont(std::string_view text);

/// The action for one thread, or null.
[[nodiscard]] const tracee::ResumeAction* action_for(const std::vector<VContAction>& actions,
                                                     tracee::ThreadId thread);

}  // namespace backtrail::server::handlers
