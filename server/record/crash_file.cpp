#include "server/record/crash_file.hpp"

#include <algorithm>
#include <utility>

#include <unistd.h>

#include <fmt/format.h>

#include "decoder/corefile/trace_blocks.hpp"
#include "ptrace/os/procfs.hpp"
#include "ptrace/os/ptrace_request.hpp"
#include "ptrace/source/thread_trace.hpp"
#include "server/session/gdb_signals.hpp"

namespace backtrail::server {
namespace {

/// A program whose children die one after the other must not fill the disk.
constexpr std::size_t kMostFiles = 4;

Result<void> write_ring(std::uint32_t tid, const decoder::RecordRing& ring,
                        const tracee::CoreTrace::Sink& sink) {
  std::vector<decoder::Record> records;
  std::vector<std::uint8_t> block;
  for (std::uint64_t at = ring.begin(); at < ring.end();) {
    records.clear();
    block.clear();
    const std::uint64_t first = at;
    for (; at < ring.end() && records.size() < decoder::kBlockRecords; ++at) {
      records.push_back(ring.at(at));
    }
    decoder::append_block(tid, first, records, block);
    BT_CHECKED(sink(block));
  }
  return {};
}

/// The trace of each thread that has one; the dying thread's first.
std::vector<tracee::CoreTrace> traces_of(tracee::Process& process, pid_t first) {
  std::vector<tracee::CoreTrace> out;
  for (const auto& thread : process.threads()) {
    if (!thread->trace()) continue;
    thread->trace()->source().flush();
    const decoder::BtsHistory* history = thread->trace()->bts();
    if (history == nullptr) continue;
    const decoder::RecordRing& ring = history->records();
    const auto tid = static_cast<std::uint32_t>(thread->tid());
    out.push_back({.tid = tid,
                   .name = tracee::ProcFs{}.comm(thread->tid()).value_or(""),
                   .records = ring.size(),
                   .lost = ring.overwritten(),
                   .write = [tid, &ring](const tracee::CoreTrace::Sink& sink) {
                     return write_ring(tid, ring, sink);
                   }});
  }
  std::stable_partition(out.begin(), out.end(), [first](const tracee::CoreTrace& trace) {
    return trace.tid == static_cast<std::uint32_t>(first);
  });
  return out;
}

std::string size_text(std::uint64_t bytes) {
  constexpr std::uint64_t kMega = 1U << 20U;
  return bytes < kMega ? fmt::format("{} kB", (bytes + 1023) / 1024)
                       : fmt::format("{} MB", (bytes + kMega - 1) / kMega);
}

}  // namespace

std::string crash_file_name(const std::string& pattern, pid_t pid, const std::string& name,
                            std::time_t time) {
  std::string out;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '%' || i + 1 == pattern.size()) {
      out += pattern[i];
      continue;
    }
    switch (pattern[++i]) {
      case 'p':
        out += std::to_string(pid);
        break;
      case 'e':
        for (const char c : name) out += c == '/' ? '!' : c;
        break;
      case 't':
        out += std::to_string(time);
        break;
      case '%':
        out += '%';
        break;
      default:
        out += {'%', pattern[i]};
        break;
    }
  }
  return out;
}

CrashFiles::CrashFiles(CrashFileOptions options, std::string command)
    : options_{std::move(options)}, command_{std::move(command)} {}

void CrashFiles::on_fatal_signal(tracee::Process& process, tracee::Thread& thread, int signal) {
  const auto same = [&](const Kept& kept) { return kept.pid == process.pid(); };
  // Threads can fault at the same time: the first one is the cause.
  if (std::any_of(kept_.begin(), kept_.end(), same)) return;
  if (kept_.size() >= kMostFiles) {
    ++more_;
    return;
  }
  Kept kept = write(process, thread, signal);
  if (!kept.path.empty()) kept_.push_back(std::move(kept));
}

CrashFiles::Kept CrashFiles::write(tracee::Process& process, tracee::Thread& thread, int signal) {
  const std::time_t now = std::time(nullptr);
  const std::string name = tracee::ProcFs{}.comm(thread.tid()).value_or("program");
  const std::string program = tracee::ProcFs{}.comm(process.pid()).value_or(name);
  const std::string path = crash_file_name(options_.pattern, process.pid(), program, now);
  tracee::CoreCause cause{.signal = signal, .tid = thread.tid(), .siginfo = {}, .about = {}};
  if (const auto info = tracee::request::read_siginfo(thread.tid())) cause.siginfo = *info;
  cause.about = {{"command", command_},
                 {"reason", "signal"},
                 {"signal", std::to_string(signal)},
                 {"time", std::to_string(now)},
                 {"recorder", "backtrail"}};
  const auto traces = traces_of(process, thread.tid());
  const auto written = tracee::write_core(process, cause, traces, path, options_.core);
  if (!written) {
    failures_ += fmt::format("backtrail: no crash file: {}: {}\n", path, written.error().message());
    return {};
  }
  std::string line =
      fmt::format("backtrail: {} in {} (process {}): {} ({})", gdb_signal_name(signal), program,
                  process.pid(), path, size_text(written->disk_bytes));
  if (written->missing_bytes != 0) {
    line += fmt::format("; {} of memory did not fit", size_text(written->missing_bytes));
  }
  return {process.pid(), path, line + "\n"};
}

std::string CrashFiles::finish(const tracee::StopEvent& end) {
  const bool good = end.kind == tracee::StopKind::kProcessExited && end.exit_code == 0;
  std::string text = good ? "" : failures_;
  for (const Kept& kept : kept_) {
    if (good) {
      ::unlink(kept.path.c_str());
    } else {
      text += kept.line;
    }
  }
  if (!good && more_ != 0) {
    text += fmt::format("backtrail: {} more processes crashed; no file of them was kept\n", more_);
  }
  kept_.clear();
  return text;
}

}  // namespace backtrail::server
