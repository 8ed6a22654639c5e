// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Why a recorded process ends, and which endings are worth a crash file.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "server/transport/explained.hpp"

namespace backtrail::server {

enum class EndReason : std::uint8_t {
  kSignal,      ///< `signal` ends it; the signal is about to be delivered, or was (SIGKILL).
  kExit,        ///< Exits with `exit_code`.
  kSanitizer,   ///< Exits with `exit_code` on behalf of a sanitizer's run-time library.
  kLeakCheck,   ///< A leak check is about to begin, which ends recording.
  kTerminated,  ///< `signal` was sent to the recorder.
  kTimeout,     ///< Exceeded its time limit.
};

struct Ending {
  EndReason reason = EndReason::kSignal;
  int signal = 0;
  int exit_code = 0;
  bool sanitized = false;  ///< The process contains a sanitizer's run-time library.
};

/// Returns "signal", "leak-check", ..., as in files.
[[nodiscard]] std::string_view reason_name(EndReason reason);
/// Returns "SIGSEGV", "exit status 3", ..., for users.
[[nodiscard]] std::string ending_text(const Ending& ending);

/// The endings after which a file is kept.
struct KeepPolicy {
  bool signal = true;
  bool sanitizer = true;
  bool abort = false;   ///< SIGABRT only.
  bool exit = false;    ///< An exit status other than 0.
  bool always = false;  ///< Any ending of the program; its children's by the other fields.
  std::optional<std::chrono::milliseconds> timeout;

  /// Parses a list such as "signal,timeout=2.5". The error is a sentence.
  static Explained<KeepPolicy> parse(std::string_view list);
  /// @param is_program The process is the program itself, not one of its children.
  [[nodiscard]] bool wants(const Ending& ending, bool is_program) const;
};

}  // namespace backtrail::server
