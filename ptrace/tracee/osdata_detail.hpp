// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Helpers shared by the tables of osdata.hpp.

#include <string>
#include <string_view>
#include <vector>

#include "ptrace/tracee/osdata.hpp"

namespace backtrail::tracee {

/// Calls f(line) for each line, without its newline.
template <typename Function>
void for_each_text_line(std::string_view text, Function f) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    f(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

/// Returns the words between blanks.
[[nodiscard]] std::vector<std::string_view> split_words(std::string_view line);
/// Returns the user's login name, or the number if there is none.
[[nodiscard]] std::string user_name(uid_t uid);
/// Converts the hexadecimal form of /proc/net/tcp and tcp6 to "127.0.0.1" or "::1"; empty if
/// malformed.
[[nodiscard]] std::string internet_address(std::string_view hex);
/// Returns the table "sockets".
[[nodiscard]] std::vector<OsDataRow> sockets(const ProcFs& proc);

}  // namespace backtrail::tracee
