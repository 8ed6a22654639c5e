// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Checks a trace against the program's code: each record must begin where control can get to from
/// the end of the previous one, and a direct branch must lead to its target.

#include <array>
#include <set>
#include <span>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "arch/insn.hpp"
#include "decoder/trace/trace_consumer.hpp"
#include "ptrace/tracee/process.hpp"

namespace backtrail::tracee {

/// For code that does not change. Checks each pair of addresses once.
class TraceJudge {
 public:
  void look_at(Process& process, const decoder::Record& before, const decoder::Record& record) {
    ++records_;
    const bool placed = record.kind != decoder::RecordKind::kGap || record.from != TraceeAddr{};
    if (placed && !known_stretches_.contains({before.to, record.from})) {
      known_stretches_.emplace(before.to, record.from);
      walk(process, before.to, record.from);
    }
    if (record.kind != decoder::RecordKind::kBranch) return;
    if (!known_branches_.emplace(record.from, record.to).second) return;
    const arch::InsnFacts insn = at(process, record.from);
    const bool direct = insn.target != TraceeAddr{};
    if (!insn.is_branch() || (direct && insn.target != record.to)) {
      object("no branch leads from {:x} to {:x}", record.from, record.to);
    }
  }
  /// Returns the errors found; empty if there are none.
  [[nodiscard]] const std::string& objections() const { return objections_; }
  [[nodiscard]] std::size_t records() const { return records_; }

 private:
  using Pair = std::pair<TraceeAddr, TraceeAddr>;

  static arch::InsnFacts at(Process& process, TraceeAddr pc) {
    std::array<std::uint8_t, arch::kMaxInsnBytes> bytes{};
    const std::size_t count = process.read_code(pc, bytes);
    return arch::decode_insn(process.isa(), pc, std::span{bytes}.first(count));
  }

  void walk(Process& process, TraceeAddr from, TraceeAddr to) {
    using arch::InsnKind;
    TraceeAddr pc = from;
    while (pc < to) {
      const arch::InsnFacts insn = at(process, pc);
      const bool goes_on = insn.kind == InsnKind::kOther ||
                           insn.kind == InsnKind::kConditionalJump ||
                           insn.kind == InsnKind::kSystemCall;
      if (!insn.known() || !goes_on) break;
      pc = pc + insn.length;
    }
    if (pc != to) object("control does not get from {:x} to {:x}", from, to);
  }

  void object(fmt::format_string<std::uint64_t, std::uint64_t> what, TraceeAddr from,
              TraceeAddr to) {
    if (objections_.size() < 2000)
      objections_ += fmt::format(what, from.value(), to.value()) + '\n';
  }

  std::set<Pair> known_stretches_;
  std::set<Pair> known_branches_;
  std::string objections_;
  std::size_t records_ = 0;
};

/// Passes one thread's records to the judge.
class JudgedTrace : public decoder::TraceConsumer {
 public:
  JudgedTrace(Process& process, TraceJudge& judge) : process_{process}, judge_{judge} {}
  void consume(std::span<const decoder::Record> records) override {
    for (const decoder::Record& record : records) {
      const bool first = record.kind == decoder::RecordKind::kGap &&
                         (record.reason == decoder::GapReason::kStart ||
                          record.reason == decoder::GapReason::kOverflow);
      if (!first) judge_.look_at(process_, last_, record);
      last_ = record;
    }
  }

 private:
  Process& process_;
  TraceJudge& judge_;
  decoder::Record last_;
};

}  // namespace backtrail::tracee
