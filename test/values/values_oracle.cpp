// SPDX-License-Identifier: Apache-2.0
// values_oracle [-w STEPS] [-n STOP_AFTER] [-t 1] [-l LINKS] [-v 1] PROGRAM [ARGUMENT...]:
// single-steps a program, recovers its past from the trace alone (-v 1: and the values that
// `record --values=most` records; -v 2: --values=all), and compares. Exit status 1: a value was
// wrong.

#include <cstdlib>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "judged_trails.hpp"
#include "judged_values.hpp"

using namespace backtrail::decoder::values;

int main(int argc, char** argv) {
  HistoryLimits limits;
  TruthOptions options;
  TruthRun::Recorded recorded = TruthRun::Recorded::kNothing;
  int at = 1;
  for (; at + 1 < argc && argv[at][0] == '-'; at += 2) {
    const std::size_t value = std::strtoull(argv[at + 1], nullptr, 10);
    if (argv[at][1] == 'w') limits.window_steps = value;
    if (argv[at][1] == 'n') options.stop_after = value;
    if (argv[at][1] == 't') options.from_trap = value != 0;
    if (argv[at][1] == 'l') limits.links = static_cast<FrameLinks>(value);
    if (argv[at][1] == 'v') recorded = static_cast<TruthRun::Recorded>(value);
    if (argv[at][1] == 'k') options.most_steps = value;
  }
  const std::vector<std::string> command(argv + at, argv + argc);
  if (command.empty()) return 2;
  TruthRun run{command, options};
  if (!run.ok()) {
    fmt::print(stderr, "{}\n", run.error());
    return 2;
  }
  run.set_recorded(recorded);
  if (const char* few = std::getenv("BT_SHOW"))
    show_unknown(run, limits, std::strtoull(few, nullptr, 10));
  const Judgement judgement = judge(run, limits);
  fmt::print("{}: {} steps, {}\n", command[0], run.steps().size(), judgement.text());
  for (const std::string& line : judgement.wrong) fmt::print("  {}\n", line);
  constexpr std::size_t kTrails = 1000;
  const TrailJudgement trails = judge_trails(run, limits, kTrails);
  fmt::print("  trails: {} wrong of {}\n", trails.wrong_count, trails.compared);
  for (const std::string& line : trails.wrong) fmt::print("  {}\n", line);
  const bool is_right = judgement.wrong_count == 0 && trails.wrong_count == 0;
  return is_right && judgement.consistent ? 0 : 1;
}
