// SPDX-License-Identifier: Apache-2.0
#include "server/target/core_maps.hpp"

#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <fmt/format.h>

#include "ptrace/tracee/link_map.hpp"

namespace backtrail::server {
namespace {

/// Returns "4711" for "/proc/4711/maps" and "/proc/4711/task/4712/maps"; empty for other files.
std::string_view process_of_maps(std::string_view path) {
  constexpr std::string_view kProc = "/proc/";
  constexpr std::string_view kMaps = "/maps";
  if (!path.starts_with(kProc) || !path.ends_with(kMaps)) return {};
  path.remove_prefix(kProc.size());
  return path.substr(0, path.find('/'));
}

}  // namespace

std::string core_maps_text(const decoder::CoreFile& core) {
  const unsigned pointer_bytes = core.isa() == arch::Isa::kAmd64 ? 8 : 4;
  const TraceeAddr vdso = tracee::parse_auxv(core.auxv(), pointer_bytes).vdso;
  std::string out;
  for (const decoder::CoreSegment& segment : core.segments()) {
    const decoder::CoreMapping* file = core.mapping_at(segment.start);
    std::string line = fmt::format(
        "{:08x}-{:08x} {}{}{}p {:08x} 00:00 0", segment.start.value(),
        segment.start.value() + segment.memory_bytes, (segment.flags & PF_R) != 0 ? 'r' : '-',
        (segment.flags & PF_W) != 0 ? 'w' : '-', (segment.flags & PF_X) != 0 ? 'x' : '-',
        file == nullptr ? 0 : file->file_offset + (segment.start - file->start));
    if (file != nullptr) {
      line += fmt::format(" {}", file->path);
    } else if (vdso != TraceeAddr{} && segment.start == vdso) {
      line += " [vdso]";
    }
    out += line + "\n";
  }
  return out;
}

std::string CoreProcFiles::path_of(const std::string& path) {
  std::string nowhere = "/proc/0" + path;
  if (process_of_maps(path) != std::to_string(core_.process().pid)) return nowhere;
  if (!maps_) {
    const std::string text = core_maps_text(core_);
    tracee::UniqueFd file{::memfd_create("maps", MFD_CLOEXEC)};
    if (!file) return nowhere;
    const ssize_t written = ::write(file.get(), text.data(), text.size());
    if (written != static_cast<ssize_t>(text.size())) return nowhere;
    maps_ = std::move(file);
  }
  return fmt::format("/proc/self/fd/{}", maps_.get());
}

}  // namespace backtrail::server
