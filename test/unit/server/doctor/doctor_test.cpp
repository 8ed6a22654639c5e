// SPDX-License-Identifier: Apache-2.0
#include "server/doctor/doctor.hpp"

#include <cerrno>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace backtrail::server {
namespace {

using testing::HasSubstr;
using testing::Not;

tracee::MachineFacts machine() {
  tracee::MachineFacts facts;
  facts.cpu_vendor = "AuthenticAMD";
  facts.cpu_model = "AMD EPYC";
  facts.kernel = "6.1.0";
  facts.hypervisor = true;
  facts.perf_event_paranoid = 3;
  return facts;
}

std::vector<tracee::SourceProbe> sources(bool step_works) {
  tracee::SourceProbe bts;
  bts.kind = tracee::SourceKind::kPerfBts;
  bts.detail = "perf_event_open: Operation not permitted";
  bts.advice = "root can lower perf_event_paranoid";
  bts.errno_value = EPERM;
  tracee::SourceProbe lbr;
  lbr.kind = tracee::SourceKind::kLbr;
  lbr.available = true;
  lbr.only_asked = true;
  tracee::SourceProbe step;
  step.kind = tracee::SourceKind::kStep;
  step.available = step_works;
  return {bts, lbr, step};
}

TEST(Doctor, NamesFactsSourcesAndAdvice) {
  const std::string text =
      doctor_report(machine(), sources(true), std::chrono::nanoseconds{20'000});
  for (const char* part :
       {"AMD EPYC", "6.1.0", "hypervisor yes", "perf_event_paranoid 3", "ptrace_scope absent",
        "Operation not permitted", "root can lower perf_event_paranoid", "20.0 us",
        "50000 instructions a second"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
}

TEST(Doctor, AutoNeverTakesTheLastBranchesOnly) {
  EXPECT_THAT(doctor_report(machine(), sources(true), std::chrono::nanoseconds{1}),
              HasSubstr("auto takes step"));
  EXPECT_THAT(doctor_report(machine(), sources(false), std::chrono::nanoseconds{1}),
              HasSubstr("auto takes none"));
}

TEST(Doctor, AFailedMeasurementIsSaid) {
  const std::string text =
      doctor_report(machine(), sources(false), fail(errno_error(EPERM, "ptrace(PTRACE_TRACEME)")));
  EXPECT_THAT(text, HasSubstr("not measured: ptrace(PTRACE_TRACEME): Operation not permitted"));
  EXPECT_THAT(text, Not(HasSubstr("instructions a second")));
}

}  // namespace
}  // namespace backtrail::server
