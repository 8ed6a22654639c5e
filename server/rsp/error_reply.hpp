// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Error replies. No other file makes "E01" or "E.text".

#include <string>
#include <string_view>

#include "arch/base/error.hpp"

namespace backtrail::server::rsp {

/// Form of an error that the client understands for the packet at hand. gdb 13 takes text only for
/// some packets (Qbtrace, qXfer:btrace, Qbtrace-conf, P, G). gdb 16 announces `error-message+` and
/// takes text for all.
enum class ErrorForm : std::uint8_t { kNumber, kText };

/// Returns "E01", the number that gdbserver uses for nearly every error.
[[nodiscard]] std::string error_reply();
/// Returns "E" and two hex digits, the low 8 bits of `number`.
[[nodiscard]] std::string error_reply(std::uint8_t number);
/// Returns "E." and the text, limited to 500 characters of printable ASCII other than '#', '$', '}'
/// and '*'. "E01" if the text is empty.
[[nodiscard]] std::string error_text_reply(std::string_view text);
/// Returns the error's message as text, or "E01".
[[nodiscard]] std::string error_reply(const Error& error, ErrorForm form = ErrorForm::kNumber);

}  // namespace backtrail::server::rsp
