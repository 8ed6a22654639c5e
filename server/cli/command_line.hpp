#pragma once
/// @file
/// The command line as a value. Nothing here prints or exits.

#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <sys/types.h>

#include "ptrace/core/core_writer.hpp"
#include "ptrace/source/source_kind.hpp"
#include "ptrace/tracee/launch_spec.hpp"
#include "server/cli/crash_files.hpp"
#include "server/cli/crash_tools.hpp"
#include "server/cli/decode.hpp"
#include "server/cli/report.hpp"
#include "server/cli/tail.hpp"
#include "server/record/recorder.hpp"
#include "server/target/target.hpp"
#include "server/transport/comm_spec.hpp"

namespace backtrail::server {

/// Serve a program, a running process or (multi) whatever the client asks for.
struct ServeOptions {
  CommSpec comm;
  std::optional<pid_t> attach;  ///< A running process to take over.
  tracee::LaunchSpec launch;    ///< Its program is empty when none was given.
  bool multi = false;
  bool once = false;
  tracee::SourceKind source = tracee::SourceKind::kAuto;
  bool from_start = false;  ///< Record before anybody asks.
  std::set<std::string> disabled_packets;
  std::string log;            ///< As log::configure takes it; empty = as it is.
  std::string log_file;       ///< Empty = stderr.
  TailListening tail;         ///< For `backtrail tail`.
  bool as_gdbserver = false;  ///< Speaks as gdbserver does where the two differ.
};

/// Run a program recorded, without gdb.
struct RecordOptions {
  tracee::LaunchSpec launch;
  RecorderOptions recorder;
  std::string crash_file;  ///< Pattern of its name; empty: none is kept.
  KeepPolicy keep;
  bool undumpable = false;        ///< Also of processes of which the kernel keeps no core.
  bool pack = false;              ///< Crash files, in archives.
  bool all = false;               ///< Every record, on disk.
  std::uint64_t spool_bytes = 0;  ///< Of these.
  tracee::CoreOptions core;
  std::string log;  ///< As log::configure takes it; empty = as it is.
};

/// Say what this machine can do.
struct DoctorOptions {
  bool known_program = false;  ///< Be the program that sources are compared on.
};

/// Print a text and end: on stdout when the status is 0, else on stderr.
struct PrintAndExit {
  int status = 0;
  std::string text;
};

using Command =
    std::variant<ServeOptions, RecordOptions, DoctorOptions, ReplayOptions, ReportCommand,
                 InfoOptions, PackOptions, DecodeOptions, TailOptions, PrintAndExit>;

/// Understands gdbserver's arguments when the program's name is backtrail-gdbserver, and
/// subcommands otherwise.
/// @param arguments  argv; the first one is the program's name.
[[nodiscard]] Command parse_command_line(std::span<const std::string> arguments);

// The two languages; without the program's name.
[[nodiscard]] Command parse_gdbserver_arguments(std::span<const std::string> arguments);
[[nodiscard]] Command parse_backtrail_arguments(std::span<const std::string> arguments);
/// The words behind `backtrail record`.
[[nodiscard]] Command parse_record_arguments(std::span<const std::string> arguments);
/// The words behind `backtrail replay`.
[[nodiscard]] Command parse_replay_arguments(std::span<const std::string> arguments);
/// The words behind `backtrail report`.
[[nodiscard]] Command parse_report_arguments(std::span<const std::string> arguments);
/// The words behind `backtrail info` and `backtrail pack`.
[[nodiscard]] Command parse_info_arguments(std::span<const std::string> arguments);
[[nodiscard]] Command parse_pack_arguments(std::span<const std::string> arguments);

// What they share.

/// "COMM PROG ARGS...", "COMM PID" with `attach` or "COMM --attach PID", put into `options`.
/// @return The error; `usage` when the words do not make sense at all.
struct WordsError {
  bool usage = false;
  std::string text;
};
[[nodiscard]] std::optional<WordsError> place_words(std::span<const std::string> words, bool attach,
                                                    ServeOptions& options);

/// Names for --disable-packet, comma separated; `threads` stands for four of them.
[[nodiscard]] Explained<std::set<std::string>> parse_packet_names(std::string_view list);
/// What can be disabled, one a line.
[[nodiscard]] std::string packet_names_help();

/// A process id in decimal, 0x... or octal, as C writes numbers.
[[nodiscard]] std::optional<pid_t> parse_pid(const std::string& text);

}  // namespace backtrail::server
