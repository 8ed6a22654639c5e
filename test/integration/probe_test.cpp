// SPDX-License-Identifier: Apache-2.0
#include "ptrace/source/probe.hpp"

#include <algorithm>
#include <cerrno>
#include <string>

#include "test/integration/traced_program.hpp"

namespace backtrail::tracee {
namespace {

TEST(SourceProbeHere, FindsStepAndExplainsTheRest) {
  const MachineFacts facts = read_machine_facts();
  EXPECT_FALSE(facts.kernel.empty());
  const auto probes = probe_all_sources(facts);
  EXPECT_EQ(probes.size(), 5U);
  for (const SourceProbe& probe : probes) {
    EXPECT_FALSE(probe.detail.empty());
    if (probe.kind == SourceKind::kStep) {
      EXPECT_TRUE(probe.taken_unasked()) << probe.detail;
    }
  }
  EXPECT_TRUE(probe_source(SourceKind::kAuto, facts).taken_unasked());
  // No child of a probe may remain.
  EXPECT_EQ(::waitpid(-1, nullptr, __WALL | WNOHANG), -1);
}

TEST(SourceProbeHere, TellsOfAThreadThatIsNotRecordedWhatItTellsOfTheMachine) {
  const Error refused = errno_error(ENOENT, "perf_event_open");
  for (const SourceProbe& probe : probe_all_sources(read_machine_facts())) {
    const std::string words = why_not_recorded(probe.kind, refused);
    EXPECT_EQ(words.find('\n'), std::string::npos);
    if (probe.available) continue;
    EXPECT_FALSE(probe.advice.empty()) << probe.detail;
    EXPECT_EQ(words, std::string{to_string(probe.kind)} + ": " + probe.words());
  }
  const Error gone = make_error(TraceErrc::kTraceeGone, "read pc");
  EXPECT_EQ(why_not_recorded(SourceKind::kPerfPt, gone), gone.message());
  EXPECT_EQ(why_not_recorded(SourceKind::kCache, refused), refused.message());
}

}  // namespace
}  // namespace backtrail::tracee
