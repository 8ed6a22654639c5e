// SPDX-License-Identifier: Apache-2.0
#include "ptrace/tracee/attach_check.hpp"

#include <array>
#include <charconv>
#include <utility>

#include <sys/stat.h>

#include <fmt/format.h>

namespace backtrail::tracee {
namespace {

// Source: <linux/capability.h>.
constexpr std::uint64_t kCapSysPtrace = std::uint64_t{1} << 19;

std::string name_of(pid_t pid, const ProcFs& proc) {
  const auto comm = proc.comm(pid);
  return comm ? fmt::format("{} ({})", pid, *comm) : fmt::format("{}", pid);
}

std::optional<ProcStatus> own_status(const ProcFs& proc) {
  const auto text = proc.read("self/status");
  return text ? parse_status(*text) : std::nullopt;
}

int yama_scope(const ProcFs& proc) {
  const auto text = proc.read("sys/kernel/yama/ptrace_scope");
  int value = 0;
  if (text) std::from_chars(text->data(), text->data() + text->size(), value);
  return value;
}

bool is_descendant(pid_t pid, pid_t ancestor, const ProcFs& proc) {
  constexpr int kDeepest = 1000;
  for (int i = 0; i < kDeepest && pid > 1; ++i) {
    if (pid == ancestor) return true;
    const auto stat = proc.stat(pid);
    if (!stat) return false;
    pid = stat->ppid;
  }
  return false;
}

std::optional<std::string> identity_obstacle(const ProcStatus& target, const ProcStatus& own) {
  const uid_t uid = own.effective_uid;
  if (target.real_uid != uid || target.effective_uid != uid || target.saved_uid != uid)
    return fmt::format(
        "process {} ({}) belongs to user {}, this server runs as user {}. Run as that user, as "
        "root, or with "
        "the capability SYS_PTRACE.",
        target.tgid, target.name, target.real_uid, uid);
  if (target.real_gid != own.effective_gid || target.effective_gid != own.effective_gid)
    return fmt::format(
        "process {} ({}) runs as group {}, this server runs as group {}. Run as that group, as "
        "root, or with "
        "the capability SYS_PTRACE.",
        target.tgid, target.name, target.effective_gid, own.effective_gid);
  return std::nullopt;
}

std::optional<std::string> yama_obstacle(pid_t pid, const ProcStatus& own, bool capable,
                                         const ProcFs& proc) {
  switch (yama_scope(proc)) {
    case 1:
      if (capable || is_descendant(pid, own.tgid, proc)) return std::nullopt;
      return fmt::format(
          "kernel.yama.ptrace_scope is 1: only a process's ancestors may trace it, and this "
          "server is none of process {}'s. Start the program with it, run as root, or set it to 0 "
          "(sysctl kernel.yama.ptrace_scope=0).",
          pid);
    case 2:
      if (capable) return std::nullopt;
      return "kernel.yama.ptrace_scope is 2: tracing needs the capability SYS_PTRACE. Run as root, "
             "or set it to 1 or 0 (sysctl kernel.yama.ptrace_scope=0).";
    case 3:
      return "kernel.yama.ptrace_scope is 3: nobody may trace on this machine, and only a restart "
             "without that setting changes it.";
    default:
      return std::nullopt;
  }
}

std::string refusal(pid_t pid, const ProcFs& proc) {
  const auto own = own_status(proc);
  const bool capable = own && (own->effective_capabilities & kCapSysPtrace) != 0;
  std::string text = fmt::format("the kernel refuses to trace process {}", name_of(pid, proc));
  if (const auto container = container_kind(proc)) {
    text += fmt::format("; this is a container ({})", *container);
    if (!capable)
      text += ". Start it with --cap-add=SYS_PTRACE.";
    else
      text += ". Its seccomp profile may forbid ptrace (--security-opt seccomp=unconfined).";
    return text;
  }
  if (own && own->seccomp != 0)
    return text + "; a seccomp filter is in force here that may forbid ptrace.";
  if (!capable)
    return text +
           ": it may have raised privileges or be marked undumpable. Run as root or with the "
           "capability SYS_PTRACE.";
  return text + ": a security module may forbid it.";
}

/// Names a thread that another process traces, and that process.
std::optional<std::string> traced_thread(pid_t pid, const ProcFs& proc) {
  const auto tasks = proc.tasks(pid);
  if (!tasks) return std::nullopt;
  for (const pid_t tid : *tasks) {
    const auto status = proc.status(tid);
    if (!status || status->tracer_pid == 0 || status->traced_here()) continue;
    return fmt::format(
        "thread {} of process {} is traced already, by process {}. A thread has one tracer only.",
        tid, name_of(pid, proc), name_of(status->tracer_pid, proc));
  }
  return std::nullopt;
}

bool exists(const std::string& path) {
  struct stat facts {};
  return ::stat(path.c_str(), &facts) == 0;
}

}  // namespace

std::optional<std::string> attach_obstacle(pid_t pid, const ProcFs& proc) {
  const auto stat = proc.stat(pid);
  const auto target = proc.status(pid);
  if (!stat || !target) return fmt::format("there is no process {}.", pid);
  const auto own = own_status(proc);
  if (own && target->tgid == own->tgid)
    return fmt::format("process {} is this server itself.", pid);
  if (target->tgid != pid)
    return fmt::format("{} is a thread of process {}; attach to the process.", pid,
                       name_of(target->tgid, proc));
  if (stat->kernel_thread())
    return fmt::format("{} is a thread of the kernel; it has no program to debug.",
                       name_of(pid, proc));
  if (stat->zombie() && !proc.live_task(pid))
    return fmt::format("process {} has ended already; its parent, process {}, has yet to notice.",
                       name_of(pid, proc), name_of(stat->ppid, proc));
  if (target->tracer_pid != 0)
    return fmt::format(
        "process {} is traced already, by process {}. A process has one tracer only.",
        name_of(pid, proc), name_of(target->tracer_pid, proc));
  if (auto obstacle = traced_thread(pid, proc)) return obstacle;
  if (!own) return std::nullopt;
  const bool capable = (own->effective_capabilities & kCapSysPtrace) != 0;
  if (!capable)
    if (auto obstacle = identity_obstacle(*target, *own)) return obstacle;
  return yama_obstacle(pid, *own, capable, proc);
}

std::string explain_attach_failure(pid_t pid, const Error& error, const ProcFs& proc) {
  if (auto obstacle = attach_obstacle(pid, proc)) return *obstacle;
  if (error.is(TraceErrc::kTraceeGone)) return fmt::format("process {} has just ended.", pid);
  if (error.is(std::errc::operation_not_permitted) || error.is(std::errc::permission_denied))
    return refusal(pid, proc);
  return error.message();
}

std::optional<std::string> container_kind(const ProcFs& proc) {
  // The root folder lies beside the real /proc, so a test's procfs has these files beside it too.
  if (exists(proc.root() + "/../.dockerenv")) return "docker";
  if (exists(proc.root() + "/../run/.containerenv")) return "podman";
  constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kMarks{
      {{"kubepods", "kubernetes"},
       {"docker", "docker"},
       {"libpod", "podman"},
       {"containerd", "containerd"},
       {"lxc", "lxc"},
       {"machine.slice", "systemd-nspawn"}}};
  for (const char* file : {"1/cgroup", "self/cgroup", "1/environ"}) {
    const auto text = proc.read(file);
    if (!text) continue;
    if (std::string_view{file} == "1/environ") {
      const std::size_t at = text->find("container=");
      if (at == 0 || (at != std::string::npos && (*text)[at - 1] == '\0'))
        return std::string{text->c_str() + at + 10};
      continue;
    }
    for (const auto& [mark, kind] : kMarks)
      if (text->find(mark) != std::string::npos) return std::string{kind};
  }
  return std::nullopt;
}

}  // namespace backtrail::tracee
