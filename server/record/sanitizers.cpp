// SPDX-License-Identifier: Apache-2.0
#include "server/record/sanitizers.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include <elf.h>
#include <sys/stat.h>

#include "arch/base/log.hpp"
#include "arch/cpu/syscall_abi.hpp"
#include "ptrace/core/mapped_file.hpp"
#include "ptrace/os/file_facts.hpp"
#include "ptrace/os/procfs.hpp"
#include "ptrace/tracee/link_map.hpp"
#include "server/record/library_function.hpp"
#include "server/record/report_points.hpp"

namespace backtrail::server {
namespace {

/// Machine code of LeakSanitizer's clone; the new task has no frames and executes call *%rax with a
/// value from its stack. The distance of the jump in between is left out.
constexpr std::array<std::uint8_t, 6> kCloneBegin{0x0f, 0x05, 0x48, 0x85, 0xc0, 0x75};
constexpr std::array<std::uint8_t, 7> kCloneEnd{0x48, 0x31, 0xed, 0x58, 0x5f, 0xff, 0xd0};
constexpr std::size_t kCloneBytes = kCloneBegin.size() + 1 + kCloneEnd.size();

/// Searches once for what all names have in common: a large program has megabytes of names.
bool names_a_sanitizer(std::string_view names) {
  constexpr std::array<std::string_view, 5> kNames{"san.so", "__sanitizer_", "__asan_init",
                                                   "__tsan_init", "__ubsan_handle_"};
  constexpr std::string_view kCommon = "san";
  for (std::size_t at = 0; at < names.size(); at += kCommon.size()) {
    const void* found =
        ::memmem(names.data() + at, names.size() - at, kCommon.data(), kCommon.size());
    if (found == nullptr) return false;
    at = static_cast<std::size_t>(static_cast<const char*>(found) - names.data());
    for (const std::string_view name : kNames) {
      const std::size_t before = name.find(kCommon);
      if (before <= at && names.substr(at - before).starts_with(name)) return true;
    }
  }
  return false;
}

template <typename T>
bool read_at(std::span<const std::uint8_t> bytes, std::uint64_t offset, T& out) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof out) return false;
  std::memcpy(&out, bytes.data() + offset, sizeof out);
  return true;
}

/// Returns true if `wanted` holds for one of the file's string tables: one that is loaded, which
/// dynamic linking uses, or one that is not, which debuggers use.
bool has_names(const std::string& path, bool loaded,
               const std::function<bool(std::string_view)>& wanted) {
  const auto file = tracee::MappedFile::open(path);
  if (!file) return false;
  const auto bytes = file->bytes();
  Elf64_Ehdr header{};
  if (!read_at(bytes, 0, header) || header.e_ident[EI_CLASS] != ELFCLASS64) return false;
  for (std::uint64_t i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section{};
    if (!read_at(bytes, header.e_shoff + i * sizeof section, section)) return false;
    if (section.sh_type != SHT_STRTAB || ((section.sh_flags & SHF_ALLOC) != 0) != loaded) continue;
    if (section.sh_offset > bytes.size() || section.sh_size > bytes.size() - section.sh_offset) {
      continue;
    }
    const auto names = bytes.subspan(section.sh_offset, section.sh_size);
    if (wanted({reinterpret_cast<const char*>(names.data()), names.size()})) return true;
  }
  return false;
}

bool file_names_a_sanitizer(const std::string& path) {
  return has_names(path, true, names_a_sanitizer);
}

/// Compilers before 1.74 leave no other sign of themselves in a file.
bool file_names_panics(const std::string& path) {
  return has_names(path, false, [](std::string_view names) {
    // memmem, because a large program has a hundred megabytes of names.
    return ::memmem(names.data(), names.size(), kPanicFunction.data(), kPanicFunction.size()) !=
           nullptr;
  });
}

/// Returns true if a sanitizer is preloaded before the program's own libraries.
bool preloads_a_sanitizer(pid_t pid) {
  const auto text = tracee::ProcFs{}.read(pid, "environ");
  if (!text) return false;
  constexpr std::string_view kVariable = "LD_PRELOAD=";
  for (std::string_view rest = *text; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\0'), rest.size());
    const std::string_view variable = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (variable.starts_with(kVariable) && names_a_sanitizer(variable)) return true;
  }
  return false;
}

/// Returns true if the mapping has code of a sanitizer: a library of that name, or a program that
/// contains one.
bool holds_a_runtime(pid_t pid, const tracee::MapEntry& map) {
  if (!map.execute || map.inode == 0) return false;
  const std::size_t slash = map.path.rfind('/');
  const std::string_view name = std::string_view{map.path}.substr(slash + 1);
  if (name.find("san.so") != std::string_view::npos ||
      (name.starts_with("libclang_rt.") && name.find("san") != std::string_view::npos)) {
    return true;
  }
  const auto exe = tracee::ProcFs{}.exe(pid);
  return exe && *exe == map.path && file_names_a_sanitizer(tracee::ProcFs{}.path(pid, "exe"));
}

bool makes_system_call(tracee::Thread& thread, std::uint64_t wide, std::uint64_t narrow) {
  const auto regs = thread.user_regs();
  if (!regs) return false;
  const bool is_wide = thread.process().isa() == arch::Isa::kAmd64;
  return (*regs)[arch::cpu::kSyscallInProgress] == (is_wide ? wide : narrow);
}

std::vector<TraceeAddr> clones_in(tracee::Process& process, const tracee::MapEntry& map) {
  constexpr std::size_t kPiece = std::size_t{1} << 20U;
  std::vector<std::uint8_t> bytes(kPiece + kCloneBytes);
  std::vector<TraceeAddr> out;
  for (std::uint64_t at = map.start; at < map.end; at += kPiece) {
    const std::size_t wanted = std::min<std::uint64_t>(bytes.size(), map.end - at);
    const std::size_t got = process.read_code(TraceeAddr{at}, std::span{bytes}.first(wanted));
    const auto end = bytes.begin() + static_cast<std::ptrdiff_t>(got);
    for (auto found = bytes.begin();; ++found) {
      found = std::search(found, end, kCloneBegin.begin(), kCloneBegin.end());
      if (end - found < static_cast<std::ptrdiff_t>(kCloneBytes)) break;
      if (std::equal(kCloneEnd.begin(), kCloneEnd.end(), found + kCloneBegin.size() + 1)) {
        out.emplace_back(at + static_cast<std::uint64_t>(found - bytes.begin()));
      }
    }
  }
  return out;
}

}  // namespace

bool is_ending_process(tracee::Thread& thread) {
  constexpr std::uint64_t kExitGroup = 231;
  constexpr std::uint64_t kExitGroup32 = 252;
  return makes_system_call(thread, kExitGroup, kExitGroup32);
}

bool is_ending_itself(tracee::Thread& thread) {
  constexpr std::uint64_t kExit = 60;
  constexpr std::uint64_t kExit32 = 1;
  return makes_system_call(thread, kExit, kExit32);
}

bool lies_in_a_runtime(pid_t pid, std::span<const tracee::MapEntry> maps, TraceeAddr pc) {
  const auto map = std::find_if(maps.begin(), maps.end(), [&](const tracee::MapEntry& each) {
    return each.start <= pc.value() && pc.value() < each.end;
  });
  return map != maps.end() && holds_a_runtime(pid, *map);
}

Sanitizers::Names Sanitizers::names_of(const std::string& path) {
  constexpr std::size_t kMostFiles = 1000;
  struct stat facts {};
  if (::stat(path.c_str(), &facts) != 0) return {};
  const tracee::FileFacts key = tracee::facts_of(facts);
  if (const auto known = names_.find(key); known != names_.end()) return known->second;
  if (names_.size() == kMostFiles) names_.clear();
  const Names names{file_names_a_sanitizer(path), file_names_panics(path)};
  if (tracee::is_settled(facts)) names_.emplace(key, names);
  return names;
}

void Sanitizers::on_exec(pid_t pid) {
  processes_.erase(pid);
  const Names names = names_of(tracee::ProcFs{}.path(pid, "exe"));
  const bool sanitized = names.sanitizer || preloads_a_sanitizer(pid);
  if (!sanitized && !names.panics) return;
  Found& found = processes_[pid];
  found.sanitized = sanitized;
  const auto auxv = tracee::ProcFs{}.auxv(pid);
  if (!auxv) return;
  const TraceeAddr entry = tracee::parse_auxv(*auxv, sizeof(std::uint64_t)).entry;
  // Its libraries are mapped by then.
  if (entry.value() != 0 && engine_.insert(pid, {.address = entry})) found.entry = entry;
}

void Sanitizers::on_fork(pid_t parent, pid_t child) {
  const auto found = processes_.find(parent);
  if (found == processes_.end()) return;
  processes_.insert_or_assign(child, found->second);
  // The child inherits the breakpoints but not their conditions.
  const auto reports = found->second.reports;
  for (const auto& [address, what] : reports) plant_report(child, address, what);
}

void Sanitizers::plant(tracee::Process& process, Found& found) {
  const auto maps = tracee::ProcFs{}.maps(process.pid());
  if (!maps) return;
  if (const auto exe = tracee::ProcFs{}.exe(process.pid())) {
    const std::string file = tracee::ProcFs{}.path(process.pid(), "exe");
    for (const TraceeAddr address : find_panic_points(file, *exe, *maps)) {
      plant_report(process.pid(), address, Told::kPanic);
    }
  }
  for (const tracee::MapEntry& map : *maps) {
    if (!found.sanitized || !holds_a_runtime(process.pid(), map)) continue;
    for (const TraceeAddr address : clones_in(process, map)) {
      if (engine_.insert(process.pid(), {.address = address})) found.leak_checks.insert(address);
    }
    find_reports(process, map, *maps, found);
  }
  log::server().debug("pid={}: {} calls of a leak check, {} of reports", process.pid(),
                      found.leak_checks.size(), found.reports.size());
  if (found.leak_checks.empty()) return;
  // The leak check is made after the program has called exit().
  const auto exit = find_library_function(process.pid(), *maps, "libc.so", "exit");
  if (exit && engine_.insert(process.pid(), {.address = *exit})) found.exit = *exit;
}

/// Uses /proc for the program's own file, which may have been moved or deleted.
void Sanitizers::find_reports(tracee::Process& process, const tracee::MapEntry& map,
                              std::span<const tracee::MapEntry> maps, Found& found) {
  const auto exe = tracee::ProcFs{}.exe(process.pid());
  const bool is_program = exe && *exe == map.path;
  const std::string file = is_program ? tracee::ProcFs{}.path(process.pid(), "exe") : map.path;
  for (const ReportPoint& point : find_report_points(file, map.path, maps)) {
    if (found.reports.contains(point.address)) continue;
    plant_report(process.pid(), point.address,
                 point.may_end ? Told::kReport : Told::kPassingReport);
  }
}

/// The condition is false: the thread steps over the breakpoint and goes on.
void Sanitizers::plant_report(pid_t pid, TraceeAddr address, Told what) {
  const auto condition = [this, what](tracee::ThreadId id) {
    note_report(id, what);
    return false;
  };
  if (!engine_.insert(pid, {.address = address, .condition = condition})) return;
  processes_[pid].reports.emplace(address, what);
}

void Sanitizers::note_report(tracee::ThreadId id, Told what) {
  const auto found = processes_.find(id.pid);
  tracee::Thread* thread = engine_.find(id);
  if (found == processes_.end() || thread == nullptr || found->second.reports_left == 0) return;
  --found->second.reports_left;
  if (what == Told::kPanic) return panicked_(*thread);
  reported_(*thread, what == Told::kReport);
}

Sanitizers::Stop Sanitizers::on_breakpoint(tracee::Thread& thread) {
  tracee::Process& process = thread.process();
  const auto found = processes_.find(process.pid());
  const auto pc = thread.pc();
  if (found == processes_.end() || !pc) return Stop::kNotOurs;
  if (found->second.leak_checks.contains(*pc)) return Stop::kLeakCheck;
  if (*pc == found->second.exit) {
    note_exit(thread, found->second);
    return Stop::kGoOn;
  }
  if (*pc != found->second.entry) return Stop::kNotOurs;
  (void)engine_.remove(process.pid(), {.address = *pc});
  found->second.entry = TraceeAddr{};
  plant(process, found->second);
  return Stop::kGoOn;
}

void Sanitizers::note_exit(tracee::Thread& thread, Found& found) {
  constexpr std::uint64_t kMask = 0xff;
  if (const auto regs = thread.user_regs()) {
    found.exit_code = static_cast<int>(syscall_argument(*regs, 0) & kMask);
  }
  (void)engine_.remove(thread.process().pid(), {.address = found.exit});
  found.exit = TraceeAddr{};
}

std::optional<int> Sanitizers::exit_code(pid_t pid) const {
  const auto found = processes_.find(pid);
  return found == processes_.end() ? std::nullopt : found->second.exit_code;
}

tracee::Thread* Sanitizers::ending_thread(tracee::Process& process) const {
  const auto maps = tracee::ProcFs{}.maps(process.pid());
  if (!maps) return nullptr;
  for (const auto& thread : process.threads()) {
    if (!thread->stopped() || !is_ending_process(*thread)) continue;
    const auto pc = thread->pc();
    if (!pc) continue;
    if (lies_in_a_runtime(process.pid(), *maps, *pc)) return thread.get();
  }
  return nullptr;
}

}  // namespace backtrail::server
