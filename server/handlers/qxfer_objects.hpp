#pragma once
/// @file
/// The documents behind qXfer. Each function makes one whole document; slices are cut elsewhere.

#include <string>
#include <string_view>

#include "arch/base/result.hpp"
#include "server/session/session_context.hpp"

namespace backtrail::server::handlers {

/// A document, or the reply that says why there is none.
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

/// "E01" as a Document.
[[nodiscard]] inline tl::unexpected<Reply> no_document() {
  return tl::unexpected<Reply>{Reply::error()};
}

/// Text as XML character data or an attribute's value. Bytes that XML 1.0 forbids become '?'.
[[nodiscard]] std::string xml_escaped(std::string_view text);

}  // namespace backtrail::server::handlers
