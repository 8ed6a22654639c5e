// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Documents that qXfer sends. Each function returns a whole document; qxfer.cpp cuts the slices.

#include <string>
#include <string_view>

#include "arch/base/result.hpp"
#include "server/session/session_context.hpp"

namespace backtrail::server::handlers {

/// A document, or the reply that replaces it.
using Document = tl::expected<std::string, Reply>;

Document auxv_document(SessionContext& context, std::string_view annex);
Document exec_file_document(SessionContext& context, std::string_view annex);
Document features_document(SessionContext& context, std::string_view annex);
Document threads_document(SessionContext& context, std::string_view annex);
Document siginfo_document(SessionContext& context, std::string_view annex);
Document libraries_document(SessionContext& context, std::string_view annex);
Document osdata_document(SessionContext& context, std::string_view annex);
Document btrace_document(SessionContext& context, std::string_view annex);
Document btrace_conf_document(SessionContext& context, std::string_view annex);

/// Returns "E01" as a Document.
[[nodiscard]] inline tl::unexpected<Reply> no_document() {
  return tl::unexpected<Reply>{Reply::error()};
}

/// Escapes text for XML character data or an attribute's value. Bytes that XML 1.0 forbids become
/// '?'.
[[nodiscard]] std::string xml_escaped(std::string_view text);

}  // namespace backtrail::server::handlers
