// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Parses the command line into a value. Neither prints nor exits.

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
#include "server/cli/warm.hpp"
#include "server/cli/why.hpp"
#include "server/record/recorder.hpp"
#include "server/target/target.hpp"
#include "server/transport/comm_spec.hpp"

namespace backtrail::server {

/// Serve a program, a running process, or (multi) whatever the client asks for.
struct ServeOptions {
  CommSpec comm;
  std::optional<pid_t> attach;  ///< Running process to attach to.
  tracee::LaunchSpec launch;    ///< Program to launch; its path is empty if none was given.
  bool multi = false;
  bool once = false;
  tracee::SourceKind source = tracee::SourceKind::kAuto;
  bool from_start = false;  ///< Record before the client asks.
  /// Recorded besides branches for the past of programs.
  tracee::ValueDepth values = tracee::ValueDepth::kFree;
  std::set<std::string> disabled_packets;
  std::string log;            ///< Levels as log::configure takes them; empty = unchanged.
  std::string log_file;       ///< Empty = stderr.
  TailListening tail;         ///< Socket of `backtrail tail`.
  bool as_gdbserver = false;  ///< Behave like gdbserver where the two differ.
};

/// Run a program recorded, without gdb.
struct RecordOptions {
  tracee::LaunchSpec launch;
  RecorderOptions recorder;
  std::string crash_file;  ///< Pattern of the crash file's name; empty = keep none.
  KeepPolicy keep;
  bool undumpable = false;        ///< Keep files also of processes that the kernel does not dump.
  bool pack = false;              ///< Pack crash files into archives.
  bool attachments = false;       ///< Print a line by which test reports attach the files.
  std::string project;            ///< Folder that attachments are relative to; empty = none.
  bool all = false;               ///< Keep every record, on disk.
  std::uint64_t spool_bytes = 0;  ///< Most bytes on disk for all records.
  tracee::CoreOptions core;
  std::string log;  ///< Levels as log::configure takes them; empty = unchanged.
};

/// Report what this machine can do.
struct DoctorOptions {
  bool known_program = false;  ///< Run as the program on which sources are compared.
};

/// Print a text and exit: on stdout if the status is 0, else on stderr.
struct PrintAndExit {
  int status = 0;
  std::string text;
};

using Command = std::variant<ServeOptions, RecordOptions, DoctorOptions, ReplayOptions,
                             ReportCommand, WhyOptions, InfoOptions, PackOptions, DecodeOptions,
                             TailOptions, WarmOptions, PrintAndExit>;

/// Parses gdbserver's arguments if the program's name is backtrail-gdbserver, otherwise
/// subcommands.
/// @param arguments  argv, with the program's name first.
[[nodiscard]] Command parse_command_line(std::span<const std::string> arguments);

// The two command lines; `arguments` is without the program's name.
[[nodiscard]] Command parse_gdbserver_arguments(std::span<const std::string> arguments);
[[nodiscard]] Command parse_backtrail_arguments(std::span<const std::string> arguments);
/// Parses the words after `backtrail record`.
[[nodiscard]] Command parse_record_arguments(std::span<const std::string> arguments);
/// Parses the words after `backtrail replay`.
[[nodiscard]] Command parse_replay_arguments(std::span<const std::string> arguments);
/// Parses the words after `backtrail report`.
[[nodiscard]] Command parse_report_arguments(std::span<const std::string> arguments);
/// Parses the words after `backtrail why`.
[[nodiscard]] Command parse_why_arguments(std::span<const std::string> arguments);
/// Parse the words after `backtrail info` and `backtrail pack`.
[[nodiscard]] Command parse_info_arguments(std::span<const std::string> arguments);
[[nodiscard]] Command parse_pack_arguments(std::span<const std::string> arguments);

// Common parts of the two command lines.

/// Puts "COMM PROG ARGS...", "COMM PID" with `attach`, or "COMM --attach PID" into `options`.
/// @return The error; `usage` is set if the usage text should follow.
struct WordsError {
  bool usage = false;
  std::string text;
};
[[nodiscard]] std::optional<WordsError> place_words(std::span<const std::string> words, bool attach,
                                                    ServeOptions& options);

/// Parses names for --disable-packet, separated by commas; `threads` stands for four of them.
[[nodiscard]] Explained<std::set<std::string>> parse_packet_names(std::string_view list);
/// Returns the names that can be disabled, one a line.
[[nodiscard]] std::string packet_names_help();

/// Parses a process id: decimal, 0x... or octal, as in C.
[[nodiscard]] std::optional<pid_t> parse_pid(const std::string& text);

}  // namespace backtrail::server
