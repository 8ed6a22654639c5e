#pragma once
/// @file
/// Errors as the client sees them. No other file makes "E01" or "E.text".

#include <string>
#include <string_view>

#include "arch/base/error.hpp"

namespace backtrail::server::rsp {

/// Which form of an error a client understands for the packet at hand. gdb 13 takes text only for
/// some packets (Qbtrace, qXfer:btrace, Qbtrace-conf, and P and G as they came); gdb 16 says
/// `error-message+` and takes it for all.
enum class ErrorForm : std::uint8_t { kNumber, kText };

/// "E01", the one number gdbserver uses for nearly everything.
[[nodiscard]] std::string error_reply();
/// "E" and two hex digits; only the low 8 bits count.
[[nodiscard]] std::string error_reply(std::uint8_t number);
/// "E." and the text made fit for a packet: printable ASCII, neither '#', '$', '}' nor '*', at
/// most 500 characters. An empty text gives "E01".
[[nodiscard]] std::string error_text_reply(std::string_view text);
/// The error's message as text, or "E01".
[[nodiscard]] std::string error_reply(const Error& error, ErrorForm form = ErrorForm::kNumber);

}  // namespace backtrail::server::rsp
