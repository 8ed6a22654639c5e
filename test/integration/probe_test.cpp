#include "ptrace/source/probe.hpp"

#include <algorithm>

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
  // Nothing is left behind.
  EXPECT_EQ(::waitpid(-1, nullptr, __WALL | WNOHANG), -1);
}

}  // namespace
}  // namespace backtrail::tracee
