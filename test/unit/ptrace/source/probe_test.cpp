// SPDX-License-Identifier: Apache-2.0
#include "ptrace/source/probe.hpp"

#include <cerrno>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/unit/ptrace/fake_proc.hpp"

namespace backtrail::tracee {
namespace {

using testing::HasSubstr;

MachineFacts intel() {
  MachineFacts out;
  out.cpu_vendor = "GenuineIntel";
  out.flag_intel_pt = out.flag_bts = out.flag_dtes64 = true;
  return out;
}

TEST(MachineFacts, ComeFromProc) {
  const FakeProc fake;
  fake.add(
      "cpuinfo",
      "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Some CPU @ 3 GHz\n"
      "flags\t\t: fpu dtes64x bts intel_pt hypervisor\n\nprocessor\t: 1\nvendor_id\t: Other\n");
  fake.add("sys/kernel/perf_event_paranoid", "-1\n");
  fake.add("sys/kernel/osrelease", "6.1.0-13-amd64\n");
  fake.add("self/status", "Tgid:\t1\nCapEff:\t0000004000000000\nSeccomp:\t2\n");
  const MachineFacts facts = read_machine_facts(ProcFs{fake.root()});
  EXPECT_EQ(facts.cpu_vendor, "GenuineIntel");
  EXPECT_EQ(facts.cpu_model, "Some CPU @ 3 GHz");
  EXPECT_TRUE(facts.flag_bts && facts.flag_intel_pt && facts.hypervisor);
  EXPECT_FALSE(facts.flag_dtes64);
  EXPECT_EQ(facts.perf_event_paranoid, -1);
  EXPECT_FALSE(facts.ptrace_scope);
  EXPECT_EQ(facts.kernel, "6.1.0-13-amd64");
  EXPECT_TRUE(facts.capability_perfmon);
  EXPECT_FALSE(facts.capability_ptrace);
  EXPECT_EQ(facts.seccomp, 2);
}

TEST(SourceProbe, TrustsNoSuccessOnForeignCpus) {
  MachineFacts facts = intel();
  facts.cpu_vendor = "AuthenticAMD";
  const SourceProbe bts = judge_source(SourceKind::kPerfBts, facts, 0, false);
  EXPECT_FALSE(bts.available);
  EXPECT_THAT(bts.detail, HasSubstr("AuthenticAMD"));
  EXPECT_FALSE(judge_source(SourceKind::kPerfPt, facts, 0, true).available);
}

TEST(SourceProbe, NeedsTheCpuFlags) {
  MachineFacts facts = intel();
  EXPECT_TRUE(judge_source(SourceKind::kPerfBts, facts, 0, false).available);
  facts.flag_dtes64 = false;
  EXPECT_FALSE(judge_source(SourceKind::kPerfBts, facts, 0, false).available);
  facts.hypervisor = true;
  EXPECT_FALSE(judge_source(SourceKind::kPerfBts, facts, 0, false).available);
}

TEST(SourceProbe, NeedsTheUnitForPt) {
  EXPECT_TRUE(judge_source(SourceKind::kPerfPt, intel(), 0, true).available);
  const SourceProbe absent = judge_source(SourceKind::kPerfPt, intel(), ENOENT, false);
  EXPECT_FALSE(absent.available);
  EXPECT_THAT(absent.detail, HasSubstr("intel_pt"));
  const SourceProbe amd = judge_source(SourceKind::kPerfPt, MachineFacts{}, ENOENT, false);
  EXPECT_THAT(amd.advice, HasSubstr("another CPU"));
}

TEST(SourceProbe, SaysWhoCanChangeIt) {
  MachineFacts facts = intel();
  facts.perf_event_paranoid = 3;
  const auto judge = [&](int error) {
    return judge_source(SourceKind::kPerfBts, facts, error, false);
  };
  EXPECT_THAT(judge(EACCES).detail, HasSubstr("EACCES: kernel.perf_event_paranoid is 3"));
  EXPECT_THAT(judge(EACCES).advice, HasSubstr("PERFMON"));
  facts.seccomp = 2;
  EXPECT_THAT(judge(EPERM).detail, HasSubstr("seccomp"));
  facts.hypervisor = true;
  EXPECT_THAT(judge(ENOENT).advice, HasSubstr("hypervisor"));
  for (const int error : {ENOENT, EACCES, EPERM, EBUSY, ENOSYS, EOPNOTSUPP, EINVAL, EMFILE}) {
    EXPECT_FALSE(judge(error).available);
    EXPECT_FALSE(judge(error).detail.empty());
    EXPECT_EQ(judge(error).errno_value, error);
    EXPECT_EQ(judge(error).advice.empty(), error == EMFILE) << error;
  }
}

TEST(SourceProbe, TellsAllOfItInOneLine) {
  SourceProbe probe;
  probe.detail = "no such unit";
  EXPECT_EQ(probe.words(), "no such unit");
  probe.advice = "root can change it";
  EXPECT_EQ(probe.words(), "no such unit; root can change it");
}

TEST(SourceProbe, BelievesATrialMoreThanTheKernelsYes) {
  SourceProbe bts = judge_source(SourceKind::kPerfBts, intel(), 0, false);
  for (const BtsTrial fine : {BtsTrial::kBts, BtsTrial::kRefused}) {
    judge_trial(fine, bts);
    EXPECT_TRUE(bts.available);
  }
  judge_trial(BtsTrial::kSampler, bts);
  EXPECT_FALSE(bts.available);
  EXPECT_THAT(bts.advice, HasSubstr("sampler"));
}

TEST(SourceProbe, LeavesTheLastBranchesToThoseWhoAskForThem) {
  const SourceProbe lbr = judge_source(SourceKind::kLbr, intel(), 0, false);
  EXPECT_TRUE(lbr.available);
  EXPECT_FALSE(lbr.taken_unasked());
}

}  // namespace
}  // namespace backtrail::tracee
