// SPDX-License-Identifier: Apache-2.0
#include "server/record/output_place.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <iterator>
#include <string_view>

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <fmt/format.h>

#include "decoder/report/clean_text.hpp"
#include "ptrace/core/core_output.hpp"
#include "ptrace/os/plain_file.hpp"
#include "server/crash/crash_source.hpp"
#include "server/record/crash_file.hpp"

namespace backtrail::server {
namespace {

/// Enough for registers and a short trace; with less room a file is hardly of use.
constexpr std::uint64_t kLeastRoom = 1ULL << 20;
constexpr std::string_view kElsewhere = "name another place after -o";

std::string cannot_make(const std::filesystem::path& folder, std::string_view why) {
  return fmt::format("cannot make the folder '{}': {}", decoder::printable(folder.string()),
                     decoder::printable(why));
}

/// Returns true if a part of the pattern differs between processes.
bool varies(std::string_view part) {
  for (std::size_t i = 0; i + 1 < part.size(); ++i) {
    if (part[i] != '%') continue;
    ++i;
    if (part[i] == 'p' || part[i] == 'e' || part[i] == 't') return true;
  }
  return false;
}

/// Returns the pattern's folders before the first that varies.
std::filesystem::path steady_folder(const std::string& pattern) {
  std::filesystem::path folder;
  for (const auto& part : std::filesystem::path{pattern}.parent_path()) {
    if (varies(part.string())) break;
    folder /= part;
  }
  return folder;
}

/// Returns the kernel's name for a process of the program.
std::string process_name(const std::string& program) {
  constexpr std::size_t kMostBytes = 15;
  return std::filesystem::path{program}.filename().string().substr(0, kMostBytes);
}

/// Returns true if another user's file is in the way: in a folder such as /tmp, users cannot
/// replace each other's files.
bool belongs_to_another(const std::string& folder, const std::string& file) {
  struct stat of_folder {};
  struct stat of_file {};
  const uid_t user = ::geteuid();
  return user != 0 && ::stat(folder.c_str(), &of_folder) == 0 &&
         ::lstat(file.c_str(), &of_file) == 0 && (of_folder.st_mode & S_ISVTX) != 0 &&
         of_folder.st_uid != user && of_file.st_uid != user;
}

std::string cure_of(const Error& error) {
  if (tracee::is_out_of_space(error)) return fmt::format("free some space, or {}", kElsewhere);
  if (error.is(std::errc::filename_too_long)) return "give -o a shorter name";
  return std::string{kElsewhere};
}

std::string little_room(const std::string& folder) {
  struct statvfs disk {};
  if (::statvfs(folder.c_str(), &disk) != 0) return {};
  const std::uint64_t room = std::uint64_t{disk.f_bavail} * disk.f_frsize;
  // File systems that do not count blocks report 0 of 0.
  if (disk.f_blocks == 0 || room >= kLeastRoom) return {};
  return fmt::format("the disk of '{}' has {} kB left: free some space, or {}",
                     decoder::printable(folder), room / 1024, kElsewhere);
}

/// Writes and removes a file beside the future crash file, as the recorder does before it renames
/// the file.
std::string try_to_write(const std::string& file) {
  constexpr std::array<std::uint8_t, 4096> kPage{};
  const auto words = [&](const Error& error) {
    return fmt::format("{}; {}", cannot_write(file, error), cure_of(error));
  };
  auto output = tracee::CoreOutput::create(file, ~std::uint64_t{0});
  if (!output) return words(output.error());
  const auto written = output->write(0, kPage);
  return written ? std::string{} : words(written.error());
}

}  // namespace

std::string make_folders(const std::string& folder) {
  std::filesystem::path made;
  const auto is_folder = [&] {
    struct stat status {};
    return ::stat(made.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
  };
  for (const auto& part : std::filesystem::path{folder}) {
    made /= part;
    if (is_folder() || ::mkdir(made.c_str(), ACCESSPERMS) == 0) continue;
    const int error = errno;
    if (is_folder()) continue;  // another process made it meanwhile
    struct stat status {};
    if (error == EEXIST && ::lstat(made.c_str(), &status) == 0) {
      return cannot_make(
          made, S_ISLNK(status.st_mode) ? "a dangling link has that name" : "a file has that name");
    }
    return cannot_make(made, std::strerror(error));
  }
  return {};
}

std::string file_pattern(const std::string& pattern) {
  std::error_code error;
  if (pattern.ends_with('/')) return pattern + "%e.%p.core";
  if (std::filesystem::is_directory(pattern, error)) return pattern + "/%e.%p.core";
  return pattern;
}

OutputPlace prepare_output(const std::string& pattern, const std::string& program, bool packed) {
  const auto expanded = [&](const std::string& text) {
    return crash_file_name(text, ::getpid(), process_name(program), std::time(nullptr));
  };
  const std::filesystem::path steady = steady_folder(pattern);
  OutputPlace place{.folder = steady.empty() ? "." : expanded(steady.string()), .problem = {}};
  if (std::string why = make_folders(place.folder); !why.empty()) {
    place.problem = fmt::format("{}; {}", why, kElsewhere);
    return place;
  }
  const std::filesystem::path name =
      expanded(std::filesystem::path{pattern}.filename().string()) + (packed ? ".tar.zst" : "");
  const std::string file = steady.empty() ? name.string() : (place.folder / name).string();
  if (tracee::is_no_plain_file(file)) {
    place.problem =
        cannot_write(file, "it is not a plain file and is left alone: choose another name");
  } else if (belongs_to_another(place.folder, file)) {
    place.problem = cannot_write(file, "it belongs to another user; name another one");
  } else {
    place.problem = try_to_write(file);
    if (place.problem.empty()) place.problem = little_room(place.folder);
  }
  return place;
}

void remove_crash_file(const std::string& pattern, const std::string& file) {
  ::unlink(file.c_str());
  const std::filesystem::path folders = std::filesystem::path{pattern}.parent_path();
  const std::filesystem::path steady = steady_folder(pattern);
  auto varying =
      std::distance(folders.begin(), folders.end()) - std::distance(steady.begin(), steady.end());
  std::filesystem::path folder = file;
  for (; varying > 0; --varying) {
    folder = folder.parent_path();
    if (::rmdir(folder.c_str()) != 0) return;
  }
}

}  // namespace backtrail::server
