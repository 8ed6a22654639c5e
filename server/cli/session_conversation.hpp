#pragma once
/// @file
/// A Session as the server loop sees it.

#include "server/transport/conversation.hpp"

namespace backtrail::server {

/// Begins sessions over one target. Both are borrowed and must outlive what it makes.
[[nodiscard]] ConversationFactory session_factory(Target& target, ServerState& state);

}  // namespace backtrail::server
