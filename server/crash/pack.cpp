// SPDX-License-Identifier: Apache-2.0
#include "server/crash/pack.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "decoder/corefile/core_file.hpp"
#include "decoder/report/clean_text.hpp"
#include "ptrace/core/mapped_file.hpp"
#include "ptrace/core/program_memory.hpp"
#include "server/crash/archive.hpp"
#include "server/crash/crash_info.hpp"
#include "server/crash/crash_source.hpp"
#include "server/crash/debug_files.hpp"

namespace backtrail::server {
namespace {

namespace fs = std::filesystem;

bool is_elf(const std::string& path) {
  const auto file = tracee::MappedFile::open(path);
  constexpr std::array<std::uint8_t, 4> kMagic{0x7f, 'E', 'L', 'F'};
  return file && file->bytes().size() > kMagic.size() &&
         std::equal(kMagic.begin(), kMagic.end(), file->bytes().begin());
}

/// Returns false for files too large to be headers or sources.
bool is_worth_packing(const std::string& source) {
  constexpr std::uintmax_t kMost = 8U << 20U;
  std::error_code error;
  const auto size = fs::file_size(source, error);
  return !error && size <= kMost;
}

Explained<std::string> temporary_folder() {
  std::error_code error;
  std::string folder = (fs::temp_directory_path(error) / "backtrail-XXXXXX").string();
  if (error || ::mkdtemp(folder.data()) == nullptr) {
    return explain(cannot_write(folder, std::strerror(errno)));
  }
  return folder;
}

/// Creates the folder, or accepts one that is empty or already unpacked. Refuses other folders, so
/// that no file of the user's is overwritten.
Explained<std::string> named_folder(const std::string& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return explain(cannot_write(folder, error.message()));
  const bool fresh = fs::is_empty(folder, error);
  if (error) return explain(cannot_write(folder, error.message()));
  if (!fresh && !fs::exists(fs::path{folder} / kPackedCore, error)) {
    return explain(cannot_write(folder, "other files are in it: name an empty folder"));
  }
  std::string whole = fs::absolute(folder, error).lexically_normal().string();
  while (whole.size() > 1 && whole.back() == '/') whole.pop_back();
  return whole;
}

}  // namespace

Explained<std::string> pack_crash(const std::string& core_file, const std::string& archive) {
  const auto open = open_core(core_file, core_file);
  if (!open) return explain(open.error());
  tracee::ProgramMemory memory{open->core};

  auto writer = ArchiveWriter::create(archive);
  if (!writer) return tl::unexpected{writer.error()};
  ArchiveWriter& out = **writer;
  if (auto added = out.add(kPackedCore, core_file); !added) return tl::unexpected{added.error()};
  std::string problems;
  DebugFiles beside;
  const auto add = [&](const std::string& place, const std::string& file) {
    const auto added = out.add(kPackedFiles + place, file);
    if (!added) problems += fmt::format("  {}\n", decoder::printable(added.error()));
  };
  for (const MappedProgramFile& file : mapped_program_files(open->core, memory)) {
    // Only ELF files are packed: mapped data files and devices stay here.
    if (file.found.empty()) {
      problems +=
          fmt::format("  {} is missing here, or is another file\n", decoder::printable(file.path));
    } else if (is_elf(file.found)) {
      add(file.path, file.found);
      find_debug_files(file.found, beside);
    }
  }
  const std::uint64_t programs = out.files() - 1;
  for (const std::string& file : beside.debug) add(file, file);
  const std::uint64_t debug = out.files() - 1 - programs;
  for (const std::string& file : beside.sources) {
    if (is_worth_packing(file)) add(file, file);
  }
  const std::uint64_t sources = out.files() - 1 - programs - debug;
  if (auto finished = out.finish(); !finished) return tl::unexpected{finished.error()};
  std::error_code error;
  std::string text =
      fmt::format("{}: {}; {} programs and libraries, {} debug files, {} sources\n",
                  decoder::printable(archive), size_text(fs::file_size(archive, error)), programs,
                  debug, sources);
  if (!problems.empty()) text += "not in it:\n" + problems;
  return text;
}

Explained<UnpackedCrash> UnpackedCrash::open(const std::string& archive,
                                             const std::string& folder) {
  auto place = folder.empty() ? temporary_folder() : named_folder(folder);
  if (!place) return tl::unexpected{place.error()};
  UnpackedCrash unpacked{*place, !folder.empty()};
  if (auto done = unpack_archive(archive, *place); !done) return tl::unexpected{done.error()};
  std::error_code error;
  if (!fs::exists(unpacked.core_file(), error)) {
    return explain(cannot_read(archive, "it holds no crash file"));
  }
  return unpacked;
}

UnpackedCrash::UnpackedCrash(UnpackedCrash&& other) noexcept
    : folder_{std::exchange(other.folder_, {})}, stays_{other.stays_} {}

UnpackedCrash::~UnpackedCrash() {
  std::error_code ignored;
  if (!folder_.empty() && !stays_) fs::remove_all(folder_, ignored);
}

}  // namespace backtrail::server
