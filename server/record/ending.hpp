#pragma once
/// @file
/// Why a recorded process is looked at before it is gone, and which of these ends are worth a file.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "server/transport/explained.hpp"

namespace backtrail::server {

enum class EndReason : std::uint8_t {
  kSignal,      ///< `signal` ends it; it is about to be delivered, or has been (SIGKILL).
  kExit,        ///< It exits with `exit_code`.
  kSanitizer,   ///< The same, and a sanitizer's run-time library asked for it.
  kLeakCheck,   ///< A leak check is about to begin, which ends the recording.
  kTerminated,  ///< `signal` was sent to the recorder.
  kTimeout,     ///< It has run for too long.
};

struct Ending {
  EndReason reason = EndReason::kSignal;
  int signal = 0;
  int exit_code = 0;
  bool sanitized = false;  ///< It has a sanitizer's run-time library.
};

/// "signal", "leak-check", ...: as files have it.
[[nodiscard]] std::string_view reason_name(EndReason reason);
/// "SIGSEGV", "exit status 3", ...: for people.
[[nodiscard]] std::string ending_text(const Ending& ending);

/// After which ends a file is kept.
struct KeepPolicy {
  bool signal = true;
  bool sanitizer = true;
  bool abort = false;   ///< SIGABRT alone.
  bool exit = false;    ///< An exit status other than 0.
  bool always = false;  ///< However the program ends; its children as the rest says.
  std::optional<std::chrono::milliseconds> timeout;

  /// "signal,timeout=2.5". The error is a sentence.
  static Explained<KeepPolicy> parse(std::string_view list);
  /// @param is_program  Not one of its children.
  [[nodiscard]] bool wants(const Ending& ending, bool is_program) const;
};

}  // namespace backtrail::server
