// SPDX-License-Identifier: Apache-2.0
#include "server/record/crash_file.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <future>
#include <map>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include <unistd.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "decoder/corefile/code_names.hpp"
#include "decoder/corefile/trace_blocks.hpp"
#include "decoder/report/clean_text.hpp"
#include "ptrace/codecache/space/space_sharing.hpp"
#include "ptrace/core/perf_map_file.hpp"
#include "ptrace/os/plain_file.hpp"
#include "ptrace/os/procfs.hpp"
#include "ptrace/os/ptrace_request.hpp"
#include "ptrace/trace/thread_trace.hpp"
#include "ptrace/tracee/dumpable.hpp"
#include "server/crash/crash_info.hpp"
#include "server/crash/crash_source.hpp"
#include "server/crash/pack.hpp"
#include "server/record/attachment.hpp"
#include "server/record/output_place.hpp"
#include "server/record/ring_trace.hpp"
#include "server/target/memory_facts.hpp"

namespace backtrail::server {
namespace {

constexpr std::ptrdiff_t kMostChildren = 4;
/// The first children's files are written with all their memory.
constexpr std::uint64_t kFullChildren = 2;
constexpr std::uint64_t kSmallMemory = 8ULL << 20;

/// Adds the names of code that the process generated.
void add_names(tracee::CoreTrace& trace, pid_t pid) {
  decoder::append_names(decoder::parse_perf_map(tracee::read_perf_map(pid)), trace.extra);
}

std::map<pid_t, std::string> names_of(const std::vector<pid_t>& threads) {
  std::map<pid_t, std::string> out;
  for (const pid_t tid : threads) {
    if (auto name = tracee::ProcFs{}.comm(tid)) out.emplace(tid, std::move(*name));
  }
  return out;
}

/// Adds threads that have ended. A thread at its end may also be among the living ones, without its
/// history. If a thread's history is gone, its records saved before a report may remain.
void add_ended(const std::vector<EndedThreads::Ended*>& ended, const ReportKeeper::Reports* reports,
               std::vector<tracee::CoreTrace>& out) {
  static const decoder::RecordRing no_records{1};
  for (EndedThreads::Ended* thread : ended) {
    const decoder::RecordRing& ring = thread->trace->records();
    tracee::CoreTrace trace = core_trace({.tid = thread->tid,
                                          .name = thread->name,
                                          .ring = &ring,
                                          .lost = thread->trace->lost(),
                                          .reports = reports});
    if (trace.held == 0) continue;
    std::erase_if(out, [&](const auto& other) { return other.tid == trace.tid; });
    out.push_back(std::move(trace));
  }
  if (reports == nullptr) return;
  for (const ReportKeeper::Report* report : {&reports->first, &reports->newest()}) {
    const auto is_its = [&](const tracee::CoreTrace& trace) {
      return trace.tid == static_cast<std::uint32_t>(report->tid);
    };
    if (std::none_of(out.begin(), out.end(), is_its)) {
      out.push_back(core_trace(
          {.tid = report->tid, .ring = &no_records, .lost = report->position, .reports = reports}));
    }
  }
}

/// Sources of a process's traces besides the threads' histories.
struct TraceSources {
  TraceSpool* spool = nullptr;
  EndedThreads& ended;
  const ReportKeeper::Reports* reports = nullptr;
  bool in_report = false;  ///< The first thread ends the process in the middle of a report.
  std::uint64_t left_out_of_report = 0;  ///< Branches; set by trace_of().
};

/// Returns the history of a living thread, including what was not decoded yet.
tracee::CoreTrace trace_of(tracee::Thread& thread, TraceSources& sources, bool in_report) {
  tracee::BranchSource& source = thread.trace()->source();
  const decoder::BtsHistory& history = *thread.trace()->bts();
  // One more, because a gap for the omitted branches comes first, which must not take a branch's
  // place.
  const std::uint64_t room =
      in_report ? ReportKeeper::kTail : history.size_bytes() / sizeof(decoder::Record);
  const std::uint64_t left_out = source.keep_newest(room + 1);
  source.flush();
  if (in_report) sources.left_out_of_report = left_out;
  std::uint64_t lost = in_report ? 0 : left_out;
  if (sources.reports != nullptr) {
    const auto& before = sources.reports->left_out;
    if (const auto found = before.find(thread.tid()); found != before.end()) lost += found->second;
  }
  return core_trace({.tid = thread.tid(),
                     .ring = &history.records(),
                     .facts = &history.facts(),
                     .lost = lost,
                     .reports = sources.reports,
                     .left_out_of_report = in_report ? left_out : 0});
}

/// Returns the trace of each thread that has one: the dying thread's first, those of ended threads
/// last.
std::vector<tracee::CoreTrace> traces_of(tracee::Process& process, pid_t first,
                                         TraceSources& sources) {
  TraceSpool* spool = sources.spool;
  std::vector<tracee::CoreTrace> out;
  std::vector<pid_t> threads;
  for (const auto& thread : process.threads()) threads.push_back(thread->tid());
  // Runs at the same time if the names are needed; deferred if no thread can be created.
  constexpr auto kMeanwhile = std::launch::async | std::launch::deferred;
  auto names = std::async(spool == nullptr ? kMeanwhile : std::launch::deferred, names_of,
                          std::move(threads));
  for (const auto& thread : process.threads()) {
    if (!thread->trace()) continue;
    if (spool == nullptr && thread->trace()->bts() != nullptr) {
      out.push_back(trace_of(*thread, sources, sources.in_report && thread->tid() == first));
    } else {
      thread->trace()->source().flush();
    }
  }
  if (spool != nullptr) {
    out = spool->traces(process.pid());
    // Traces are ordered by tid, so the last ended ones are roughly the newest.
    const auto first_ended =
        std::stable_partition(out.begin(), out.end(), [&](const tracee::CoreTrace& trace) {
          return process.find(static_cast<pid_t>(trace.tid)) != nullptr;
        });
    std::reverse(first_ended, out.end());
  } else {
    auto found = names.get();
    for (tracee::CoreTrace& trace : out) trace.name = found[static_cast<pid_t>(trace.tid)];
    add_ended(sources.ended.of(process.pid()), sources.reports, out);
  }
  for (tracee::CoreTrace& trace : out) {
    tracee::Thread* thread = process.find(static_cast<pid_t>(trace.tid));
    if (thread == nullptr || !thread->trace()) continue;
    // After an exec a thread may continue the records of another one.
    const decoder::BtsHistory* history = thread->trace()->bts();
    if (history == nullptr || history->records().end() != trace.end) continue;
    if (tracee::ThreadClock* clock = thread->trace()->clock()) {
      decoder::append_times(trace.tid, clock->read(), trace.extra);
    }
  }
  std::stable_partition(out.begin(), out.end(), [first](const tracee::CoreTrace& trace) {
    return trace.tid == static_cast<std::uint32_t>(first);
  });
  if (!out.empty()) add_names(out.back(), process.pid());
  return out;
}

/// Returns the process's command line; `otherwise` if it has none any more.
std::string command_line_of(pid_t pid, const std::string& otherwise) {
  const auto words = tracee::ProcFs{}.command_line(pid);
  if (!words || words->empty()) return otherwise;
  return fmt::format("{}", fmt::join(*words, " "));
}

/// Returns "SIGNAL PC SIGINFO" for each fault; PC and SIGINFO are hexadecimal. Of the siginfo, only
/// the meaningful part.
std::string caught_text(std::span<const CaughtFault> faults) {
  constexpr std::size_t kSiginfoBytes = 48;
  std::string out;
  for (const CaughtFault& fault : faults) {
    std::array<std::uint8_t, kSiginfoBytes> bytes{};
    std::memcpy(bytes.data(), &fault.info, bytes.size());
    out += fmt::format("{}{} {:x} {:02x}", out.empty() ? "" : " ", fault.signal, fault.pc.value(),
                       fmt::join(bytes, ""));
  }
  return out;
}

/// Returns false for characters in a program's name that must not be in a file name: some systems
/// that store CI artifacts refuse them.
bool fits_file_name(char c) {
  constexpr char kDelete = 0x7f;
  const bool control = (c >= 0 && c < ' ') || c == kDelete;
  return !control && std::string_view{"/\\:<>|*?\""}.find(c) == std::string_view::npos;
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
        for (const char c : name) out += fits_file_name(c) ? c : '!';
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

CrashFiles::CrashFiles(const Recorder& recorder, CrashFileOptions options, std::string command)
    : recorder_{recorder},
      options_{std::move(options)},
      command_{std::move(command)},
      ended_{options_.ended_bytes},
      reports_{options_.spool != nullptr} {}

void CrashFiles::on_thread_end(tracee::Thread& thread) {
  if (options_.spool == nullptr) ended_.add(thread);
}

void CrashFiles::on_panic(tracee::Thread& thread) {
  reports_.keep(thread);
  ended_.note_failure(thread);
}

void CrashFiles::on_end(pid_t pid, const tracee::StopEvent& /*end*/) {
  ended_.forget(pid);
  reports_.forget(pid);
}

void CrashFiles::on_exec(pid_t pid) {
  ended_.forget(pid);
  reports_.forget(pid);
  if (pid != recorder_.program()) return;
  for (Kept& kept : kept_) kept.before_exec = true;
}

bool CrashFiles::wants(pid_t pid, const Ending& ending) {
  // Several threads may fault at once, and handlers raise again; the first ending is the cause.
  const auto same = [&](const Kept& kept) { return kept.pid == pid; };
  return options_.keep.wants(ending, pid == recorder_.program()) &&
         std::none_of(kept_.begin(), kept_.end(), same);
}

void CrashFiles::on_ending(tracee::Process& process, tracee::Thread& thread, const Ending& ending) {
  if (process.pid() != recorder_.program()) {
    ++children_seen_;
    make_room();
  }
  write(process, thread, ending);
}

/// The file was written before the leak check's result was known.
void CrashFiles::on_checked(pid_t pid, const Ending& ending) {
  if (options_.keep.wants(ending, pid == recorder_.program())) return;
  const auto mine =
      std::find_if(kept_.begin(), kept_.end(), [=](const Kept& kept) { return kept.pid == pid; });
  if (mine == kept_.end()) return;
  remove_crash_file(options_.pattern, mine->path);
  kept_.erase(mine);
}

/// Limits the files of a program whose children die one after the other.
void CrashFiles::make_room() {
  const auto is_child = [](const Kept& kept) { return !kept.is_program; };
  if (std::count_if(kept_.begin(), kept_.end(), is_child) < kMostChildren) return;
  const auto oldest = std::find_if(kept_.begin(), kept_.end(), is_child);
  remove_crash_file(options_.pattern, oldest->path);
  kept_.erase(oldest);
  ++dropped_;
}

void CrashFiles::write(tracee::Process& process, tracee::Thread& thread, const Ending& ending) {
  const std::time_t now = std::time(nullptr);
  const std::string name = tracee::ProcFs{}.comm(thread.tid()).value_or("program");
  const std::string program = tracee::ProcFs{}.comm(process.pid()).value_or(name);
  Kept kept{.pid = process.pid(),
            .is_program = process.pid() == recorder_.program(),
            .path = crash_file_name(options_.pattern, process.pid(), program, now),
            .final_path = {},
            .what = fmt::format("{} in {} (process {})", ending_text(ending),
                                decoder::printable(program), process.pid()),
            .size = {},
            .ending = ending};
  kept.final_path = kept.path;
  if (tracee::is_no_plain_file(kept.final_path)) {
    note_failure(cannot_write(kept.final_path,
                              "it is not a plain file and is left alone: choose another name"));
    return;
  }
  const auto not_dumpable = tracee::why_not_dumpable(process);
  if (not_dumpable && !options_.undumpable) {
    note_failure(fmt::format("for {} (process {}): {}; --dump-undumpable keeps one",
                             decoder::printable(program), process.pid(), *not_dumpable));
    return;
  }
  // The final name is chosen at the end.
  if (!kept.is_program) kept.path += fmt::format(".{}", kept.pid);
  tracee::CoreCause cause{.signal = ending.signal, .tid = thread.tid(), .siginfo = {}, .about = {}};
  // Read it now: later stops have lost the signal.
  if (const auto info = tracee::request::read_siginfo(thread.tid());
      info && thread.at_signal_delivery()) {
    cause.siginfo = *info;
  }
  cause.about = {{"command", kept.is_program ? command_ : command_line_of(kept.pid, command_)},
                 {"reason", std::string{reason_name(ending.reason)}},
                 {"signal", std::to_string(ending.signal)},
                 {"exit-status", std::to_string(ending.exit_code)},
                 {"time", std::to_string(now)},
                 {"recorder", "backtrail"}};
  if (!kept.is_program) cause.about["run"] = command_;
  add_memory_facts(memory_facts(process, thread), cause.about);
  const std::string caught = caught_text(recorder_.caught_faults(thread.id()));
  if (!caught.empty()) cause.about["caught"] = caught;
  tracee::CoreOptions core = options_.core;
  // The heaps of a hundred children that were expected to die are of no use.
  if (!kept.is_program && children_seen_ > kFullChildren) core.most_memory = kSmallMemory;
  if (ending.reason == EndReason::kLeakCheck) core.most_memory = kSmallMemory;
  for (const auto& [begin, end] : tracee::cache::recorders_memory(process)) {
    core.left_out.push_back({begin.value(), end.value()});
  }
  // The folder's name may vary per process, and the program may have removed the folder.
  const std::string folder = std::filesystem::path{kept.path}.parent_path().string();
  if (const std::string why = make_folders(folder); !why.empty()) {
    note_failure(why);
    return;
  }
  auto mappings = tracee::read_mappings_in_advance(process);
  const bool in_report = reports_.ends_in_report(thread, ending);
  reports_.add_facts(process.pid(), in_report, cause.about);
  TraceSources sources{options_.spool, ended_, reports_.of(process.pid()), in_report};
  const auto traces = traces_of(process, thread.tid(), sources);
  if (sources.left_out_of_report != 0) {
    cause.about["report-left-out"] = std::to_string(sources.left_out_of_report);
  }
  if (options_.spool != nullptr) core.make_room = [this] { return options_.spool->make_room(); };
  const auto written =
      tracee::write_core(process, cause, traces, kept.path, core, std::move(mappings));
  if (options_.spool != nullptr) options_.spool->forget_what_was_handed_out();
  if (!written) {
    std::string why = written.error().reason();
    if (written.error().is(std::errc::no_space_on_device) && core.max_bytes != ~0ULL) {
      why += ", or --max-disk is too small for registers and traces";
    }
    if (not_dumpable && written.error().is(std::errc::permission_denied)) {
      why = fmt::format("{}, and then only root may read its memory", *not_dumpable);
    }
    note_failure(cannot_write(kept.path, why));
    return;
  }
  kept.size = size_text(written->disk_bytes);
  if (written->missing_bytes != 0) {
    kept.size +=
        fmt::format("; {} of memory {}", size_text(written->missing_bytes),
                    core.most_memory == options_.core.most_memory ? "did not fit" : "left out");
  }
  if (options_.spool != nullptr && written->older_branches != 0) {
    kept.size +=
        fmt::format("; there was no room for the oldest {} branches", written->older_branches);
  } else if (written->records_without_room != 0) {
    kept.size +=
        fmt::format("; there was no room for {} older branches", written->records_without_room);
  }
  kept_.push_back(std::move(kept));
}

void CrashFiles::note_failure(const std::string& why) {
  // Tried twice, at the signal and at the end, but reported once.
  const std::string line = fmt::format("backtrail: no crash file: {}\n", why);
  if (failures_.find(line) == std::string::npos) failures_ += line;
}

/// Packs the file now, because the environment may be gone afterwards.
/// @return Text for the user if the file stays unpacked.
std::string CrashFiles::pack(Kept& kept) {
  const std::string archive = kept.path + ".tar.zst";
  if (const auto packed = pack_crash(kept.path, archive); !packed) {
    return fmt::format("backtrail: not packed: {}\n", decoder::printable(packed.error()));
  }
  ::unlink(kept.path.c_str());
  kept.path = archive;
  std::error_code error;
  kept.size = size_text(std::filesystem::file_size(archive, error));
  return {};
}

/// Reports a SIGKILL that came just before a resume, so that the program passed its last stop
/// unseen.
void CrashFiles::note_unseen_end(const tracee::StopEvent& end) {
  const Ending ending{.reason = EndReason::kSignal, .signal = end.signal};
  const auto is_program = [](const Kept& kept) { return kept.is_program; };
  if (options_.pattern.empty() || end.kind != tracee::StopKind::kProcessSignalled ||
      end.signal != SIGKILL || !failures_.empty() || !options_.keep.wants(ending, true) ||
      std::any_of(kept_.begin(), kept_.end(), is_program)) {
    return;
  }
  failures_ +=
      "backtrail: no crash file: SIGKILL came just as the program was resumed, and nothing of it "
      "could be read: run it again\n";
}

/// Returns the index in kept_ of the file that most likely tells why the program failed; tests that
/// expect deaths leave files, too. If a signal ended the program, its own file tells. A program
/// that exits often passes on how a child ended (shells, test runners): its status, or 128 plus a
/// signal. A child from before the program's own exec (scripts that find an interpreter) does not
/// count. Without such a child it is the program's own file, or else the youngest.
std::size_t CrashFiles::guilty(const tracee::StopEvent& end) const {
  const auto last_that = [this](auto is) {
    const auto found = std::find_if(kept_.rbegin(), kept_.rend(), is);
    return static_cast<std::size_t>(kept_.rend() - found);  // 0: none; else its index plus 1
  };
  constexpr int kBySignal = 128;
  std::size_t found = 0;
  if (end.kind == tracee::StopKind::kProcessExited) {
    found = last_that([&](const Kept& kept) {
      const Ending& ending = kept.ending;
      const int status =
          ending.reason == EndReason::kSignal ? kBySignal + ending.signal : ending.exit_code;
      return !kept.is_program && !kept.before_exec && status == end.exit_code;
    });
  }
  if (found == 0) found = last_that([](const Kept& kept) { return kept.is_program; });
  return found == 0 ? kept_.size() - 1 : found - 1;
}

std::string CrashFiles::finish(const tracee::StopEvent& end) {
  note_unseen_end(end);
  const bool good =
      end.kind == tracee::StopKind::kProcessExited && end.exit_code == 0 && !recorder_.timed_out();
  std::string text = good && !options_.keep.always ? "" : failures_;
  // The file that tells why the program failed gets the plain name and comes last.
  if (!kept_.empty()) {
    const auto chosen = kept_.begin() + static_cast<std::ptrdiff_t>(guilty(end));
    std::rotate(chosen, chosen + 1, kept_.end());
  }
  const bool several = kept_.size() > 1;
  std::set<std::string> names;
  if (several) names.insert(kept_.back().final_path);
  for (Kept& kept : kept_) {
    if (good && !(kept.is_program && options_.keep.always)) {
      remove_crash_file(options_.pattern, kept.path);
      continue;
    }
    const bool is_last = &kept == &kept_.back();
    const bool has_plain_name = names.insert(kept.final_path).second || is_last;
    if (has_plain_name && kept.path != kept.final_path &&
        ::rename(kept.path.c_str(), kept.final_path.c_str()) == 0) {
      kept.path = kept.final_path;
    }
    if (options_.pack) text += pack(kept);
    if (is_last && !good && dropped_ != 0) {
      text += fmt::format("backtrail: {} older children's files were not kept\n", dropped_);
    }
    if (options_.attachments) text += attachment_line(kept.path, options_.project);
    text += fmt::format("backtrail: {}{}: {} ({})\n",
                        several && is_last && !good ? "look at this first: " : "", kept.what,
                        decoder::printable(kept.path), kept.size);
  }
  kept_.clear();
  return text;
}

}  // namespace backtrail::server
