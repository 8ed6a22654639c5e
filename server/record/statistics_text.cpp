// SPDX-License-Identifier: Apache-2.0
#include "server/record/statistics_text.hpp"

#include <fmt/format.h>

namespace backtrail::server {
namespace {

using Seconds = std::chrono::duration<double>;

double ratio(double part, double whole) {
  return whole > 0 ? part / whole : 0.0;
}

std::string line(std::string_view name, const std::string& value) {
  return fmt::format("backtrail: {:<22} {}\n", name, value);
}

std::string time_line(std::string_view name, std::chrono::nanoseconds time,
                      std::chrono::nanoseconds wall) {
  return line(name, fmt::format("{:.3f} s, {:.1f} % of the run", Seconds{time}.count(),
                                100 * ratio(Seconds{time}.count(), Seconds{wall}.count())));
}

}  // namespace

std::string statistics_text(const tracee::SourceStatistics& sums, const RunFacts& run) {
  const auto branches = static_cast<double>(sums.branches);
  std::string text;
  text += line("processes, threads", fmt::format("{}, {}", run.processes, run.threads));
  if (run.left != 0) text += line("left unrecorded", fmt::format("{} processes", run.left));
  text += line("branches taken", fmt::format("{}", sums.branches));
  text += line("instructions", fmt::format("{}", sums.instructions));
  text += line("log bytes", fmt::format("{}, {:.2f} a branch", sums.log_bytes,
                                        ratio(static_cast<double>(sums.log_bytes), branches)));
  text += line("misses", fmt::format("{}", sums.misses));
  text += line("entries of the cache", fmt::format("{}", sums.entries));
  text += line("full logs", fmt::format("{}", sums.full_logs));
  if (sums.values != 0) text += line("values", fmt::format("{}", sums.values));
  text += line("translated",
               fmt::format("{} superblocks of {} instructions in {} bytes", sums.superblocks,
                           sums.translated_instructions, sums.code_bytes));
  text += line("stepped instructions", fmt::format("{}", sums.stepped));
  for (const auto& [why, count] : sums.fallbacks) {
    text += line("  fallback", fmt::format("{}: {}", why, count));
  }
  text += line("wall time", fmt::format("{:.3f} s", Seconds{run.wall}.count()));
  text += time_line("  program, CPU", run.program_cpu, run.wall);
  text += time_line("  recorder, CPU", run.recorder_cpu, run.wall);
  text += time_line("    setting up", sums.setting_up, run.wall);
  text += time_line("    misses", sums.serving, run.wall);
  text += time_line("    reading logs", sums.reading_logs, run.wall);
  return text;
}

}  // namespace backtrail::server
