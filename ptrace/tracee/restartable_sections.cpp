// SPDX-License-Identifier: Apache-2.0
#include "ptrace/tracee/restartable_sections.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

#include <linux/rseq.h>

#include "arch/insn.hpp"
#include "ptrace/tracee/process.hpp"

namespace backtrail::tracee {
namespace {

/// Precedes abort handlers on x86, by convention.
constexpr std::uint32_t kSignature = 0x53053053;
/// Critical sections are short; a longer one is not a valid descriptor.
constexpr std::uint64_t kLongest = 64UL * 1024;
constexpr std::uint32_t kMostFlags = 7;

std::optional<rseq_cs> read_descriptor(Process& process, TraceeAddr at) {
  std::array<std::uint8_t, sizeof(rseq_cs)> bytes{};
  if (process.read_memory(at, bytes) != bytes.size()) return std::nullopt;
  rseq_cs descriptor{};
  std::memcpy(&descriptor, bytes.data(), bytes.size());
  const std::uint64_t length = descriptor.post_commit_offset;
  const bool plausible = descriptor.version == 0 && descriptor.flags <= kMostFlags &&
                         descriptor.start_ip != 0 && length != 0 && length <= kLongest &&
                         descriptor.abort_ip - descriptor.start_ip >= length;
  if (!plausible) return std::nullopt;
  return descriptor;
}

bool has_signature(Process& process, TraceeAddr abort) {
  std::array<std::uint8_t, sizeof kSignature> bytes{};
  if (process.read_memory(abort - bytes.size(), bytes) != bytes.size()) return false;
  std::uint32_t found = 0;
  std::memcpy(&found, bytes.data(), bytes.size());
  return found == kSignature;
}

void find_exits(Process& process, RestartableSection& section) {
  std::vector<std::uint8_t> code(section.end - section.begin);
  code.resize(process.read_code(section.begin, code));
  for (std::size_t at = 0; at < code.size();) {
    const TraceeAddr pc = section.begin + at;
    const auto insn = arch::decode_insn(process.isa(), pc, std::span{code}.subspan(at));
    if (!insn.known()) break;
    at += insn.length;
    if (!insn.is_branch()) continue;
    const bool direct =
        insn.kind == arch::InsnKind::kConditionalJump || insn.kind == arch::InsnKind::kJump;
    if (!direct || section.contains(insn.target)) {
      section.straight = false;
    } else {
      section.exits.push_back({pc, insn.target});
    }
  }
}

}  // namespace

std::vector<TraceeAddr> RestartableSection::ways_out() const {
  std::vector<TraceeAddr> all{end, abort};
  for (const Exit& exit : exits) {
    if (std::find(all.begin(), all.end(), exit.to) == all.end()) all.push_back(exit.to);
  }
  return all;
}

const RestartableSection* RestartableSections::add(Process& process, TraceeAddr at,
                                                   bool named_by_thread) {
  const auto descriptor = read_descriptor(process, at);
  if (!descriptor || sections_.contains(TraceeAddr{descriptor->start_ip})) return nullptr;
  RestartableSection section{
      .begin = TraceeAddr{descriptor->start_ip},
      .end = TraceeAddr{descriptor->start_ip + descriptor->post_commit_offset},
      .abort = TraceeAddr{descriptor->abort_ip},
      .exits = {}};
  if (!named_by_thread && !has_signature(process, section.abort)) return nullptr;
  find_exits(process, section);
  return &sections_.emplace(section.begin, std::move(section)).first->second;
}

const RestartableSection* RestartableSections::learn(Process& process, TraceeAddr at) {
  return add(process, at, false);
}

const RestartableSection* RestartableSections::learn_from(Process& process, TraceeAddr area) {
  std::array<std::uint8_t, sizeof(std::uint64_t)> bytes{};
  const TraceeAddr field = area + offsetof(struct rseq, rseq_cs);
  if (process.read_memory(field, bytes) != bytes.size()) return nullptr;
  std::uint64_t named = 0;
  std::memcpy(&named, bytes.data(), bytes.size());
  return named == 0 ? nullptr : add(process, TraceeAddr{named}, true);
}

const RestartableSection* RestartableSections::beginning_at(TraceeAddr pc) const {
  const auto found = sections_.find(pc);
  return found == sections_.end() ? nullptr : &found->second;
}

const RestartableSection* RestartableSections::containing(TraceeAddr pc) const {
  const auto after = sections_.upper_bound(pc);
  if (after == sections_.begin()) return nullptr;
  const RestartableSection& before = std::prev(after)->second;
  return before.contains(pc) ? &before : nullptr;
}

}  // namespace backtrail::tracee
