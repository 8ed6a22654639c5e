// SPDX-License-Identifier: Apache-2.0
// Finds the file to execute, and words it for shells and users.
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "ptrace/os/procfs.hpp"
#include "ptrace/os/unique_fd.hpp"
#include "ptrace/tracee/launch.hpp"
#include "ptrace/tracee/launch_child.hpp"

namespace backtrail::tracee {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFind = "find the program";
constexpr const char* kInspect = "inspect the program";

std::string search_path(const LaunchSpec& spec) {
  constexpr std::string_view kName = "PATH=";
  if (spec.environment) {
    for (const std::string& entry : *spec.environment)
      if (entry.starts_with(kName)) return entry.substr(kName.size());
  } else if (const char* value = std::getenv("PATH")) {
    return value;
  }
  return "/usr/local/bin:/usr/bin:/bin";
}

bool is_regular(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

bool executable(const fs::path& path) {
  return ::faccessat(AT_FDCWD, path.c_str(), X_OK, AT_EACCESS) == 0;
}

// Rejects files that are neither ELF for this CPU nor a script: execve would refuse them, and a
// shell would run them as a script of its own.
Result<void> check_format(const fs::path& path) {
  const UniqueFd fd{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (!fd) return {};  // executable but unreadable files are fine
  std::string header(20, '\0');
  const ssize_t got = ::pread(fd.get(), header.data(), header.size(), 0);
  if (got < 0) return fail_errno(kInspect);
  header.resize(static_cast<std::size_t>(got));
  if (header.starts_with("#!") || elf_isa(header)) return {};
  if (header.starts_with("\x7f"
                         "ELF"))
    return fail(TraceErrc::kUnsupported, kInspect);
  return fail(errno_error(ENOEXEC, kInspect));
}

Result<void> check_file(const fs::path& path) {
  struct stat facts {};
  if (::stat(path.c_str(), &facts) != 0) return fail_errno(kFind);
  if (S_ISDIR(facts.st_mode)) return fail(errno_error(EISDIR, kFind));
  if (!S_ISREG(facts.st_mode) || !executable(path)) return fail(errno_error(EACCES, kFind));
  return check_format(path);
}

/// Searches as execvp(3) does: a relative folder in PATH yields a relative name, and an empty one
/// is the working directory.
Result<fs::path> search(const LaunchSpec& spec, const fs::path& directory) {
  const std::string path = search_path(spec);
  bool forbidden = false;
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t end = std::min(path.find(':', at), path.size());
    const std::string folder = path.substr(at, end - at);
    const fs::path candidate = folder.empty() ? spec.program : folder + "/" + spec.program;
    if (is_regular(directory / candidate)) {
      if (executable(directory / candidate)) return candidate;
      forbidden = true;
    }
    at = end + 1;
  }
  return fail(errno_error(forbidden ? EACCES : ENOENT, kFind));
}

}  // namespace

Result<std::string> find_program(const LaunchSpec& spec) {
  if (spec.program.empty()) return fail(errno_error(ENOENT, kFind));
  std::error_code error;
  const fs::path here = fs::current_path(error);
  const fs::path directory = here / spec.working_directory;
  fs::path found = spec.program;
  if (spec.program.find('/') == std::string::npos) {
    if (spec.transparent || !is_regular(here / found)) {
      BT_TRY(found, search(spec, directory));
    } else {
      found = here / found;
    }
  }
  BT_CHECKED(check_file(directory / found));
  // The program sees this name (AT_EXECFN); a script sees it as $0.
  return spec.transparent ? found.string() : (directory / found).string();
}

std::string shell_quote(const std::string& word) {
  constexpr std::string_view kHarmless =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_+-./:,@%";
  if (!word.empty() && word.find_first_not_of(kHarmless) == std::string::npos) return word;
  std::string out = "'";
  for (const char c : word) {
    if (c == '\'')
      out += R"('\'')";
    else
      out += c;
  }
  return out + "'";
}

std::string shell_command(const LaunchSpec& spec, const std::string& program) {
  std::string out = "exec";
  for (const std::string& word : spec.wrapper) out += " " + word;
  out += " " + shell_quote(program);
  for (const std::string& word : spec.arguments) out += " " + word;
  return out;
}

std::optional<WaitStatus> startup_end(const Error& error) {
  if (!error.is(TraceErrc::kStartupFailed)) return std::nullopt;
  return WaitStatus::decode(static_cast<int>(error.detail));
}

namespace {

std::string file_text(const Error& error, const std::string& program) {
  if (error.is(TraceErrc::kUnsupported))
    return fmt::format("{}: made for another CPU; this is an x86-64 machine", program);
  if (error.is(std::errc::is_a_directory)) return fmt::format("{}: is a directory", program);
  if (error.is(std::errc::permission_denied))
    return fmt::format("{}: not executable (permission denied)", program);
  if (error.is(std::errc::no_such_file_or_directory))
    return fmt::format("{}: No such file or directory", program);
  if (error.is(std::errc::executable_format_error))
    return fmt::format("{}: neither an ELF program nor a script with a #! line", program);
  return fmt::format("{}: {}", program, error.code.message());
}

std::string operation_text(const Error& error, const LaunchSpec& spec) {
  const std::string_view operation = error.operation;
  if (operation == "chdir")
    return fmt::format("{}: cannot change to this working directory: {}", spec.working_directory,
                       error.code.message());
  if (operation == "execve" && error.is(std::errc::no_such_file_or_directory))
    return fmt::format("{}: its interpreter (#! line or dynamic linker) does not exist",
                       spec.program);
  if (operation == "execve") return file_text(error, spec.program);
  if (is_trace_refusal(error))
    return fmt::format("{}: {}", spec.program, trace_refusal_text(error));
  return fmt::format("{}: {}", spec.program, error.message());
}

}  // namespace

bool is_trace_refusal(const Error& error) {
  return std::string_view{error.operation} == kTraceRefused;
}

std::string trace_refusal_text(const Error& error) {
  if (const auto tracer = static_cast<pid_t>(error.detail); tracer != 0) {
    const auto comm = ProcFs{}.comm(tracer);
    return fmt::format("process {}{} traces it already, and a process has one tracer only", tracer,
                       comm ? fmt::format(" ({})", *comm) : "");
  }
  return fmt::format(
      "tracing is not permitted here ({}); a container needs the capability SYS_PTRACE, or a "
      "seccomp profile that allows ptrace{}",
      error.code.message(),
      error.is(std::errc::function_not_supported)
          ? "; an emulator of a CPU (qemu-user, Rosetta) has no ptrace"
          : "");
}

std::string launch_failure_text(const Error& error, const LaunchSpec& spec) {
  if (const auto end = startup_end(error)) {
    if (end->kind == WaitKind::kSignalled)
      return fmt::format("During startup program terminated with signal {}, {}.",
                         signal_name(end->signal), ::strsignal(end->signal));
    return fmt::format("During startup program exited with code {}.", end->exit_code);
  }
  if (error.is(std::errc::timed_out))
    return fmt::format("{}: did not get through its start-up in time", spec.program);
  if (error.is(std::errc::operation_canceled))
    return fmt::format("{}: start-up cancelled", spec.program);
  const std::string_view operation = error.operation;
  if (operation == kFind || operation == kInspect) return file_text(error, spec.program);
  return operation_text(error, spec);
}

}  // namespace backtrail::tracee
