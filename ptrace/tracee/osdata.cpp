// SPDX-License-Identifier: Apache-2.0
#include "ptrace/tracee/osdata.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <span>

#include <pwd.h>
#include <unistd.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ptrace/tracee/osdata_detail.hpp"

namespace backtrail::tracee {
namespace {

using Rows = std::vector<OsDataRow>;

// Parses a whitespace-separated table with a heading. `names` are the columns, from the left.
Rows table(const std::string& text, std::span<const std::string_view> names) {
  Rows out;
  bool heading = true;
  for_each_text_line(text, [&](std::string_view line) {
    if (std::exchange(heading, false)) return;
    const std::vector<std::string_view> words = split_words(line);
    if (words.size() < names.size()) return;
    OsDataRow row;
    for (std::size_t i = 0; i < names.size(); ++i)
      row.emplace_back(std::string{names[i]}, std::string{words[i]});
    out.push_back(std::move(row));
  });
  return out;
}

/// Replaces process ids in these columns by names; by nothing where there is no such process now.
Rows with_commands(Rows rows, std::span<const std::string_view> columns, const ProcFs& proc) {
  for (OsDataRow& row : rows) {
    for (auto& [name, value] : row) {
      if (std::ranges::find(columns, name) == columns.end()) continue;
      pid_t pid = 0;
      std::from_chars(value.data(), value.data() + value.size(), pid);
      value = pid > 0 ? proc.comm(pid).value_or("") : "";
    }
  }
  return rows;
}

std::string cores_of(pid_t pid, const ProcFs& proc) {
  std::vector<int> cores;
  if (const auto tasks = proc.tasks(pid))
    for (const pid_t tid : *tasks)
      if (const auto stat = proc.task_stat(pid, tid)) cores.push_back(stat->processor);
  std::sort(cores.begin(), cores.end());
  cores.erase(std::unique(cores.begin(), cores.end()), cores.end());
  return fmt::format("{}", fmt::join(cores, ","));
}

std::string command_of(pid_t pid, const std::string& comm, const ProcFs& proc) {
  const auto words = proc.command_line(pid);
  if (!words || words->empty()) return fmt::format("[{}]", comm);
  return fmt::format("{}", fmt::join(*words, " "));
}

template <typename Function>
void for_each_process(const ProcFs& proc, Function f) {
  const auto pids = proc.processes();
  if (!pids) return;
  for (const pid_t pid : *pids)
    if (const auto stat = proc.stat(pid)) f(pid, *stat);
}

Rows processes(const ProcFs& proc) {
  Rows out;
  for_each_process(proc, [&](pid_t pid, const ProcStat& stat) {
    const auto status = proc.status(pid);
    if (!status) return;
    out.push_back({{"pid", std::to_string(pid)},
                   {"user", user_name(status->effective_uid)},
                   {"command", command_of(pid, stat.comm, proc)},
                   {"cores", cores_of(pid, proc)}});
  });
  return out;
}

Rows process_groups(const ProcFs& proc) {
  struct Member {
    pid_t group;
    pid_t pid;
    std::string command;
  };
  std::vector<Member> members;
  for_each_process(proc, [&](pid_t pid, const ProcStat& stat) {
    members.push_back({stat.pgrp, pid, command_of(pid, stat.comm, proc)});
  });
  std::sort(members.begin(), members.end(), [](const Member& a, const Member& b) {
    return std::pair{a.group, a.pid} < std::pair{b.group, b.pid};
  });
  Rows out;
  for (const Member& member : members)
    out.push_back({{"pgid", std::to_string(member.group)},
                   {"leader command", proc.comm(member.group).value_or("")},
                   {"pid", std::to_string(member.pid)},
                   {"command line", member.command}});
  return out;
}

Rows threads(const ProcFs& proc) {
  Rows out;
  for_each_process(proc, [&](pid_t pid, const ProcStat& leader) {
    const auto tasks = proc.tasks(pid);
    if (!tasks) return;
    for (const pid_t tid : *tasks)
      if (const auto stat = proc.task_stat(pid, tid))
        out.push_back({{"pid", std::to_string(pid)},
                       {"command", leader.comm},
                       {"tid", std::to_string(tid)},
                       {"core", std::to_string(stat->processor)}});
  });
  return out;
}

Rows files(const ProcFs& proc) {
  namespace fs = std::filesystem;
  Rows out;
  for_each_process(proc, [&](pid_t pid, const ProcStat& stat) {
    std::error_code error;
    for (fs::directory_iterator it{proc.path(pid, "fd"), error}, end; !error && it != end;
         it.increment(error)) {
      std::error_code unreadable;
      const fs::path target = fs::read_symlink(it->path(), unreadable);
      if (unreadable) continue;
      out.push_back({{"pid", std::to_string(pid)},
                     {"command", stat.comm},
                     {"file descriptor", it->path().filename().string()},
                     {"name", target.string()}});
    }
  });
  return out;
}

Rows cpus(const ProcFs& proc) {
  Rows out;
  OsDataRow row;
  const auto text = proc.read("cpuinfo");
  if (!text) return out;
  for_each_text_line(*text, [&](std::string_view line) {
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) {
      if (!row.empty()) out.push_back(std::exchange(row, {}));
      return;
    }
    std::string_view key = line.substr(0, colon);
    while (key.ends_with('\t') || key.ends_with(' ')) key.remove_suffix(1);
    std::string_view value = line.substr(colon + 1);
    while (value.starts_with(' ')) value.remove_prefix(1);
    row.emplace_back(std::string{key}, std::string{value});
  });
  if (!row.empty()) out.push_back(std::move(row));
  return out;
}

Rows modules(const ProcFs& proc) {
  constexpr std::array<std::string_view, 6> kColumns{"name",         "size",   "num uses",
                                                     "dependencies", "status", "address"};
  // This file has no heading, so an empty one is added.
  const auto text = proc.read("modules");
  return text ? table("\n" + *text, kColumns) : Rows{};
}

Rows shared_memory(const ProcFs& proc) {
  constexpr std::array<std::string_view, 14> kColumns{"key",
                                                      "shmid",
                                                      "perm",
                                                      "size",
                                                      "creator command",
                                                      "last op. command",
                                                      "num attached",
                                                      "user",
                                                      "group",
                                                      "creator user",
                                                      "creator group",
                                                      "last shmat() time",
                                                      "last shmdt() time",
                                                      "last shmctl() time"};
  constexpr std::array<std::string_view, 2> kCommands{"creator command", "last op. command"};
  const auto text = proc.read("sysvipc/shm");
  return text ? with_commands(table(*text, kColumns), kCommands, proc) : Rows{};
}

Rows semaphores(const ProcFs& proc) {
  constexpr std::array<std::string_view, 10> kColumns{
      "key",   "semid",        "perm",          "num semaphores",    "user",
      "group", "creator user", "creator group", "last semop() time", "last semctl() time"};
  const auto text = proc.read("sysvipc/sem");
  return text ? table(*text, kColumns) : Rows{};
}

Rows message_queues(const ProcFs& proc) {
  constexpr std::array<std::string_view, 14> kColumns{"key",
                                                      "msqid",
                                                      "perm",
                                                      "num used bytes",
                                                      "num messages",
                                                      "last msgsnd() command",
                                                      "last msgrcv() command",
                                                      "user",
                                                      "group",
                                                      "creator user",
                                                      "creator group",
                                                      "last msgsnd() time",
                                                      "last msgrcv() time",
                                                      "last msgctl() time"};
  constexpr std::array<std::string_view, 2> kCommands{"last msgsnd() command",
                                                      "last msgrcv() command"};
  const auto text = proc.read("sysvipc/msg");
  return text ? with_commands(table(*text, kColumns), kCommands, proc) : Rows{};
}

struct Table {
  std::string_view type;
  std::string_view description;
  std::string_view title;
  Rows (*read)(const ProcFs&);
};
constexpr std::array kTables{
    Table{"cpus", "The machine's processors", "CPUs", cpus},
    Table{"files", "Open files of every process", "File descriptors", files},
    Table{"modules", "Modules the kernel has loaded", "Kernel modules", modules},
    Table{"msg", "System V message queues", "Message queues", message_queues},
    Table{"processes", "What runs on the machine", "Processes", processes},
    Table{"procgroups", "Processes by their group", "Process groups", process_groups},
    Table{"semaphores", "System V semaphore sets", "Semaphores", semaphores},
    Table{"shm", "System V shared memory", "Shared-memory regions", shared_memory},
    Table{"sockets", "Internet sockets, TCP and UDP", "Internet-domain sockets", sockets},
    Table{"threads", "Threads of every process", "Threads", threads},
};

}  // namespace

std::string user_name(uid_t uid) {
  std::array<char, 4096> buffer{};
  passwd entry{};
  passwd* found = nullptr;
  if (::getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr)
    return found->pw_name;
  return std::to_string(uid);
}

std::optional<std::vector<OsDataRow>> read_osdata(std::string_view type, const ProcFs& proc) {
  if (type.empty() || type == "types") {
    Rows out;
    for (const Table& entry : kTables)
      out.push_back({{"Type", std::string{entry.type}},
                     {"Description", std::string{entry.description}},
                     {"Title", std::string{entry.title}}});
    return out;
  }
  const auto* found = std::find_if(kTables.begin(), kTables.end(),
                                   [&](const Table& entry) { return entry.type == type; });
  if (found == kTables.end()) return std::nullopt;
  return found->read(proc);
}

}  // namespace backtrail::tracee
