// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Adapts a Session to the server loop.

#include "server/transport/conversation.hpp"

namespace backtrail::server {

/// Makes sessions over one target. Borrows both; they must outlive every session made.
[[nodiscard]] ConversationFactory session_factory(Target& target, ServerState& state);

}  // namespace backtrail::server
