// SPDX-License-Identifier: Apache-2.0
#include "server/crash/crash_info.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <ctime>
#include <set>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "arch/base/page.hpp"
#include "decoder/corefile/build_id.hpp"
#include "decoder/corefile/trace_archive.hpp"
#include "decoder/corefile/trace_check.hpp"
#include "decoder/report/clean_text.hpp"
#include "decoder/report/report.hpp"

namespace backtrail::server {
namespace {

using decoder::printable;

std::string line(std::string_view name, const std::string& value) {
  return fmt::format("{:<9}{}\n", name, value);
}

std::string fact(const decoder::CoreFile& core, const std::string& name) {
  const auto found = core.about().find(name);
  return found == core.about().end() ? std::string{} : printable(found->second);
}

std::string end_of(const decoder::CoreFile& core) {
  const auto& first = core.threads().front();
  const std::string reason = fact(core, "reason");
  std::string text;
  if (first.signal != 0) text = decoder::signal_name(first.signal);
  if (reason == "exit" || reason == "sanitizer") text = "exit status " + fact(core, "exit-status");
  if (!reason.empty() && reason != "signal" && reason != "exit") {
    text += (text.empty() ? "" : ", ") + reason;
  }
  if (text.empty()) text = "no signal";
  return fmt::format("{} in thread {}", text, first.tid);
}

std::string time_of(const decoder::CoreFile& core) {
  const std::string text = fact(core, "time");
  std::time_t time = 0;
  std::from_chars(text.data(), text.data() + text.size(), time);
  if (time <= 0) return {};
  return line("when", fmt::format("{:%Y-%m-%d %H:%M:%S} UTC", fmt::gmtime(time)));
}

/// Returns "", or ", times of its last 2.5 s".
std::string times_text(const decoder::TraceArchive& archive, std::uint32_t tid) {
  const auto times = archive.times(tid);
  if (!times) return {};
  constexpr double kSecond = 1e9;
  return fmt::format(
      ", times of its last {:.1f} s",
      static_cast<double>(times->times().until_ns - times->times().since_ns) / kSecond);
}

std::string trace_text(const decoder::TraceArchive::Thread* trace,
                       const decoder::ThreadCheck& check) {
  if (trace == nullptr) return ", no trace";
  std::uint64_t bytes = 0;
  for (const decoder::TraceBlock& block : trace->blocks) {
    bytes += block.stored.size() + decoder::kBlockHeaderBytes;
  }
  std::string text = fmt::format(", {} branches in {}", check.branches, size_text(bytes));
  if (trace->lost != 0) {
    text += fmt::format(", {}{} older ones not kept", trace->lost_is_exact ? "" : "at least ",
                        trace->lost);
  }
  if (check.lost_between != 0 || !check.lost_is_exact) {
    text += fmt::format(", {}{} lost in gaps", check.lost_is_exact ? "" : "at least ",
                        check.lost_between);
  }
  if (check.missing != 0) text += fmt::format(", {} damaged or missing", check.missing);
  if (!trace->name.empty()) text += ", " + printable(trace->name);
  return text;
}

/// Describes live threads, then ended threads that left only a trace.
std::string thread_lines(const decoder::CoreFile& core, const decoder::TraceArchive& archive) {
  std::string text;
  auto checks = decoder::check_traces(archive);
  std::set<std::uint32_t> alive;
  for (const decoder::CoreThread& thread : core.threads()) {
    alive.insert(thread.tid);
    text += fmt::format("  {:<8} pc {:#x}", thread.tid, thread.user.pc().value()) +
            trace_text(archive.find(thread.tid), checks[thread.tid]) +
            times_text(archive, thread.tid) + "\n";
  }
  for (const auto& [tid, trace] : archive.threads()) {
    if (!alive.contains(tid))
      text += fmt::format("  {:<8} ended", tid) + trace_text(&trace, checks[tid]) + "\n";
  }
  return text;
}

}  // namespace

std::string size_text(std::uint64_t bytes) {
  constexpr std::uint64_t kMega = 1U << 20U;
  return bytes < kMega ? fmt::format("{} kB", (bytes + 1023) / 1024)
                       : fmt::format("{} MB", (bytes + kMega - 1) / kMega);
}

std::vector<MappedProgramFile> mapped_program_files(const decoder::CoreFile& core,
                                                    tracee::ProgramMemory& memory) {
  std::vector<MappedProgramFile> out;
  std::set<std::string> seen;
  for (const decoder::CoreMapping& mapping : core.mappings()) {
    if (!seen.insert(mapping.path).second) continue;
    std::array<std::uint8_t, kPageBytes> page{};
    const std::size_t got =
        mapping.file_offset == 0 ? core.read(mapping.start, page) : std::size_t{0};
    out.push_back({.path = mapping.path,
                   .build_id = decoder::build_id_of(std::span{page}.first(got)),
                   .found = memory.find_file(mapping.path).value_or("")});
  }
  return out;
}

std::string crash_info(const std::string& name, std::uint64_t disk_bytes,
                       const decoder::CoreFile& core, tracee::ProgramMemory& memory) {
  std::string text = line("file", fmt::format("{}, {}{}", printable(name), size_text(disk_bytes),
                                              core.truncated() ? ", cut off" : ""));
  const bool wide = core.isa() == arch::Isa::kAmd64;
  text += line("process", fmt::format("{} ({}, {})", printable(core.process().name),
                                      core.process().pid, wide ? "x86-64" : "i386"));
  text += line("command", printable(core.process().arguments));
  if (const std::string run = fact(core, "command"); !run.empty()) text += line("recorded", run);
  text += line("end", end_of(core));
  text += time_of(core);

  const decoder::TraceArchive archive{core};
  text += line("threads", std::to_string(core.threads().size()));
  text += thread_lines(core, archive);
  if (core.newer_format()) text += "  the traces are of a newer format\n";
  if (const std::size_t names = archive.names().size(); names != 0) {
    text += line("names", fmt::format("{} of generated code", names));
  }
  if (archive.unreadable_bytes() != 0) {
    text += fmt::format("  {} bytes of the traces are damaged\n", archive.unreadable_bytes());
  }
  std::uint64_t mapped = 0;
  std::uint64_t held = 0;
  for (const decoder::CoreSegment& segment : core.segments()) {
    mapped += segment.memory_bytes;
    held += segment.bytes.size();
  }
  text += line("memory", fmt::format("{} of {} in {} mappings (holes counted)", size_text(held),
                                     size_text(mapped), core.segments().size()));
  const auto files = mapped_program_files(core, memory);
  text += line("files", std::to_string(files.size()));
  for (const MappedProgramFile& file : files) {
    text += fmt::format("  {} {}{}{}\n", file.found.empty() ? "missing" : "here   ",
                        printable(file.path), file.build_id.empty() ? "" : ", build-id ",
                        file.build_id);
  }
  for (const std::string& problem : memory.problems()) {
    if (problem.find("is not the file") != std::string::npos)
      text += "  " + printable(problem) + "\n";
  }
  return text;
}

}  // namespace backtrail::server
