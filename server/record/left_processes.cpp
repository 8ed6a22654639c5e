#include "server/record/left_processes.hpp"

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

void LeftProcesses::add(pid_t pid, pid_t tracer) {
  all_.push_back({tracee::UniqueFd{static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))},
                  name_of(pid), name_of(tracer)});
}

void LeftProcesses::send(int signal) const {
  for (const Left& left : all_) {
    if (left.process) ::syscall(SYS_pidfd_send_signal, left.process.get(), signal, nullptr, 0);
  }
}

std::string LeftProcesses::text() const {
  if (all_.empty()) return {};
  const Left& first = all_.front();
  std::string text =
      fmt::format("backtrail: process {} is not recorded from where {} began to trace it",
                  first.name, first.tracer);
  if (all_.size() > 1) text += fmt::format("; so are {} others", all_.size() - 1);
  return text + "\n";
}

}  // namespace backtrail::server
