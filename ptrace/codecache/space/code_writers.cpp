// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/space/code_writers.hpp"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "arch/base/log.hpp"
#include "ptrace/codecache/space/cache_space.hpp"
#include "ptrace/codecache/space/stepped_memory.hpp"
#include "ptrace/os/id_namespace.hpp"
#include "ptrace/os/process_files.hpp"
#include "ptrace/tracee/process.hpp"
#include "ptrace/tracee/thread.hpp"

namespace backtrail::tracee::cache {
namespace {

/// The kernel's name of the recorder's memory: memfd_create(2).
constexpr std::string_view kRecordersMemory = "/memfd:backtrail";

constexpr std::size_t kMostOpened = 1024;

/// A leader that has ended before its threads has no descriptors any more, so use a live thread.
std::vector<OpenFile> files_written_by(pid_t pid) {
  std::vector<OpenFile> files = files_open_for_writing(pid);
  if (!files.empty()) return files;
  const pid_t live = ProcFs{}.live_task(pid).value_or(pid);
  return live == pid ? files : files_open_for_writing(live);
}

}  // namespace

pid_t id_named_by(pid_t tid, std::uint64_t id) {
  const auto named = static_cast<pid_t>(id);
  const auto theirs = id_namespace(tid);
  if (!theirs || theirs == id_namespace(::getpid())) return named;
  const auto processes = ProcFs{}.processes();
  if (!processes) return 0;
  for (const pid_t pid : *processes) {
    if (id_namespace(pid) != theirs) continue;
    if (const auto status = ProcFs{}.status(pid); status && status->own_id == named) return pid;
  }
  return 0;
}

void CodeWriters::remove(const Process& process) {
  note_own_memory(process);
  std::erase(processes_, &process);
}

bool CodeWriters::SharedMemory::is_used_by(const Process& process) const {
  return std::ranges::find(users, &process) != users.end();
}

void CodeWriters::note_shared_memory(Process& parent, Process& child) {
  if (SharedMemory* const memory = shared_by(parent)) {
    memory->users.push_back(&child);
  } else {
    shared_.push_back({{&parent, &child}, {}});
  }
}

void CodeWriters::note_own_memory(const Process& process) {
  for (SharedMemory& memory : shared_) std::erase(memory.users, &process);
  forget_what_is_not_shared();
}

void CodeWriters::forget_what_is_not_shared() {
  std::erase_if(shared_, [](const SharedMemory& memory) {
    return memory.users.empty() || (memory.users.size() == 1 && memory.left.empty());
  });
}

const CodeWriters::SharedMemory* CodeWriters::shared_by(const Process& process) const {
  const auto found = std::ranges::find_if(
      shared_, [&](const SharedMemory& memory) { return memory.is_used_by(process); });
  return found == shared_.end() ? nullptr : &*found;
}

CodeWriters::SharedMemory* CodeWriters::shared_by(const Process& process) {
  const auto found = std::ranges::find_if(
      shared_, [&](const SharedMemory& memory) { return memory.is_used_by(process); });
  return found == shared_.end() ? nullptr : &*found;
}

std::vector<Process*> CodeWriters::users_of_memory_of(Process& process) const {
  const SharedMemory* const memory = shared_by(process);
  return memory == nullptr ? std::vector{&process} : memory->users;
}

bool CodeWriters::shares_memory(const Process& process) const {
  const SharedMemory* const memory = shared_by(process);
  return memory != nullptr && memory->users.size() > 1;
}

void CodeWriters::note_left_memory(const Process& process, std::span<const MemoryRange> ranges) {
  SharedMemory* const memory = shared_by(process);
  if (memory != nullptr) memory->left.insert(memory->left.end(), ranges.begin(), ranges.end());
}

std::span<const MemoryRange> CodeWriters::left_memory(const Process& process) const {
  const SharedMemory* const memory = shared_by(process);
  return memory == nullptr ? std::span<const MemoryRange>{} : memory->left;
}

std::vector<MemoryRange> CodeWriters::take_left_memory(const Process& process) {
  SharedMemory* const memory = shared_by(process);
  if (memory == nullptr) return {};
  std::vector<MemoryRange> left = std::exchange(memory->left, {});
  forget_what_is_not_shared();
  return left;
}

bool CodeWriters::is_same(const File& file, const MapEntry& map) {
  // Layered file systems show different numbers in different places. A file mistaken for another
  // only makes code run slower.
  return map.inode != 0 && (file.inode == map.inode || file.path == map.path);
}

std::optional<std::vector<OpenFile>> CodeWriters::look_at_files_of(Process& process) {
  if (watches_writes_) return std::nullopt;
  std::vector<OpenFile> files = files_written_by(process.pid());
  for (const OpenFile& file : files) {
    if (file.is_memory) note_file(file);
  }
  return files;
}

void CodeWriters::begin_history() {
  unseen_run_ = false;
  for (Process* process : processes_) (void)look_at_files_of(*process);
}

void CodeWriters::note_opened(pid_t tid, int fd, bool truncated) {
  const auto file = open_file(tid, fd);
  if (!file || (!file->writes && !truncated) || !file->is_regular) return;
  if (is_recorders_memory(*file)) return note_recorders_memory();
  note_file(*file);
}

bool CodeWriters::is_recorders_memory(const OpenFile& file) const {
  // A program may give a memfd of its own the same name.
  return file.path.starts_with(kRecordersMemory) &&
         std::ranges::any_of(processes_, [&](const Process* process) {
           return process->cache_space && process->cache_space->memory().is_in_file(file.inode);
         });
}

void CodeWriters::note_recorders_memory() {
  for (Process* process : processes_) {
    if (!process->cache_space) continue;
    process->cache_space->kept().give_up();
    if (!process->cache_space->begins_to_warn()) continue;
    log::ptrace().warn(
        "pid={}: the recorder's memory has been opened for writing; none of the code is "
        "kept for later runs",
        process->pid());
  }
}

void CodeWriters::note_file(const OpenFile& file) {
  if (file.is_memory) {
    // The programs of a recorded debugger are not recorded.
    if (!file.memory_of || find(*file.memory_of) != nullptr) watch_writes();
    return;
  }
  File opened{file.inode, file.path};
  bool is_code = false;
  const auto is_of_it = [&](const MapEntry& map) { return is_same(opened, map); };
  for (Process* process : processes_) {
    if (process->cache_space) is_code |= process->cache_space->file_may_change(is_of_it);
    if (process->stepped_memory) is_code |= process->stepped_memory->file_may_change(is_of_it);
  }
  if (is_code) {
    // A file that had been let go may be in the list already.
    const bool known = std::any_of(changing_.begin(), changing_.end(), [&](const File& other) {
      return other.inode == opened.inode && other.path == opened.path;
    });
    if (!known) changing_.push_back(std::move(opened));
    return;
  }
  std::erase_if(opened_, [&](const File& other) {
    return other.inode == opened.inode && other.path == opened.path;
  });
  if (opened_.size() == kMostOpened) opened_.pop_front();
  opened_.push_back(std::move(opened));
}

void CodeWriters::watch_writes() {
  if (std::exchange(watches_writes_, true)) return;
  log::ptrace().info("a program may write code through /proc/PID/mem: its writes are watched");
  for (Process* process : processes_) {
    if (process->cache_space) process->cache_space->watch_writes();
  }
}

Process* CodeWriters::find(pid_t id) const {
  const auto found = std::find_if(processes_.begin(), processes_.end(), [=](Process* process) {
    return process->pid() == id || process->find(id) != nullptr;
  });
  return found == processes_.end() ? nullptr : *found;
}

void CodeWriters::note_written(std::optional<pid_t> id, TraceeAddr begin, TraceeAddr end) {
  Process* const named = id ? find(*id) : nullptr;
  if (id && named == nullptr) return;
  for (Process* process : id ? users_of_memory_of(*named) : processes_) {
    process->insns().invalidate(begin, end);
    if (process->cache_space) process->cache_space->code_written(begin, end);
    if (process->stepped_memory) process->stepped_memory->written(begin, end);
  }
}

std::vector<CodeWriters::File> CodeWriters::files_elsewhere(pid_t but) const {
  std::vector<File> files;
  for (const Process* process : processes_) {
    if (process->pid() == but) continue;
    for (OpenFile& file : files_written_by(process->pid())) {
      files.push_back({file.inode, std::move(file.path)});
    }
    auto maps = ProcFs{}.maps(process->pid());
    if (!maps) continue;
    for (MapEntry& map : *maps) {
      if (map.shared && map.inode != 0) files.push_back({map.inode, std::move(map.path)});
    }
  }
  return files;
}

bool CodeWriters::is_young(const MapEntry& map, pid_t pid) const {
  // Timestamps of file systems are coarse.
  constexpr std::time_t kCoarse = 2;
  const dev_t device = makedev(map.device_major, map.device_minor);
  struct stat facts {};
  return !find_mapped_file(pid, map.path, map.inode, device, &facts) ||
         facts.st_ctim.tv_sec + kCoarse >= begin_;
}

bool CodeWriters::is_let_go(const MapEntry& map) const {
  const auto is_this = [&](const auto& file) { return is_same({file.inode, file.path}, map); };
  const auto is_open_in = [&](pid_t tid) {
    // A process that may not list the descriptors counts as having the file open.
    std::error_code error;
    const std::filesystem::directory_iterator descriptors{ProcFs{}.path(tid, "fd"), error};
    if (error) return true;
    const auto files = files_open_for_writing(tid);
    return std::any_of(files.begin(), files.end(), is_this);
  };
  return std::none_of(processes_.begin(), processes_.end(), [&](const Process* process) {
    const auto maps = ProcFs{}.maps(process->pid());
    if (!maps || std::any_of(maps->begin(), maps->end(), [&](const MapEntry& other) {
          return other.shared && is_this(other);
        })) {
      return true;
    }
    // Threads may have separate descriptor tables.
    const auto& threads = process->threads();
    return threads.empty() || std::any_of(threads.begin(), threads.end(), [&](const auto& thread) {
             return is_open_in(thread->tid());
           });
  });
}

bool CodeWriters::may_change(const MapEntry& map, bool is_new, Looked& looked) {
  const auto is_this = [&](const auto& file) { return is_same({file.inode, file.path}, map); };
  if (std::any_of(changing_.begin(), changing_.end(), is_this)) return true;
  if (!is_new) return false;
  if (!looked.open) looked.open = files_written_by(looked.pid);
  const bool is_shared =
      std::any_of(looked.maps.begin(), looked.maps.end(),
                  [&](const MapEntry& other) { return other.shared && is_this(other); });
  const auto may_change_elsewhere = [&] {
    // Checking each library of each process would take long.
    if (processes_.size() == 1) return false;
    if (std::none_of(opened_.begin(), opened_.end(), is_this) && !is_young(map, looked.pid)) {
      return false;
    }
    if (!looked.elsewhere) looked.elsewhere = files_elsewhere(looked.pid);
    return std::any_of(looked.elsewhere->begin(), looked.elsewhere->end(), is_this);
  };
  const bool changes = is_shared ||
                       std::any_of(looked.open->begin(), looked.open->end(), is_this) ||
                       may_change_elsewhere();
  if (changes) changing_.push_back({map.inode, map.path});
  return changes;
}

}  // namespace backtrail::tracee::cache
