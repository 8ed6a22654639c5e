// SPDX-License-Identifier: Apache-2.0
#include "server/record/left_processes.hpp"

#include <utility>

#include <sys/syscall.h>
#include <unistd.h>

#include <fmt/format.h>

#include "decoder/report/clean_text.hpp"
#include "ptrace/os/procfs.hpp"

namespace backtrail::server {
namespace {

std::string name_of(pid_t pid) {
  if (pid == 0) return "another program";
  const auto comm = tracee::ProcFs{}.comm(pid);
  return comm ? fmt::format("{} ({})", pid, decoder::printable(*comm)) : fmt::format("{}", pid);
}

}  // namespace

void LeftProcesses::add(pid_t pid, std::string what) {
  all_.push_back(
      {tracee::UniqueFd{static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))}, std::move(what)});
}

void LeftProcesses::add_traced(pid_t pid, pid_t tracer) {
  add(pid, fmt::format("process {} is not recorded after {} began to trace it", name_of(pid),
                       name_of(tracer)));
}

void LeftProcesses::add_unreadable(pid_t pid) {
  add(pid, fmt::format("process {} is not recorded: its file may be executed but not read",
                       name_of(pid)));
}

void LeftProcesses::send(int signal) const {
  for (const Left& left : all_) {
    if (left.process) ::syscall(SYS_pidfd_send_signal, left.process.get(), signal, nullptr, 0);
  }
}

std::string LeftProcesses::text() const {
  if (all_.empty()) return {};
  std::string text = "backtrail: " + all_.front().what;
  if (all_.size() > 1) text += fmt::format("; {} more are not recorded", all_.size() - 1);
  return text + "\n";
}

}  // namespace backtrail::server
