// SPDX-License-Identifier: Apache-2.0
// Reads the facts about the machine that decide which branch sources work.
#include <charconv>
#include <string_view>

#include "ptrace/source/probe.hpp"
#include "ptrace/tracee/attach_check.hpp"

namespace backtrail::tracee {
namespace {

// Source: <linux/capability.h>.
constexpr unsigned kCapSysPtrace = 19;
constexpr unsigned kCapSysAdmin = 21;
constexpr unsigned kCapPerfmon = 38;

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\n") - first + 1);
}

// Returns the value of the first line "key : value" in /proc/cpuinfo.
std::string_view cpuinfo_field(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t colon = line.find(':');
    if (colon != std::string_view::npos && trimmed(line.substr(0, colon)) == key)
      return trimmed(line.substr(colon + 1));
  }
  return {};
}

bool has_word(std::string_view words, std::string_view word) {
  for (std::size_t at = words.find(word); at != std::string_view::npos;
       at = words.find(word, at + 1)) {
    const bool begins = at == 0 || words[at - 1] == ' ';
    const std::size_t end = at + word.size();
    if (begins && (end == words.size() || words[end] == ' ')) return true;
  }
  return false;
}

unsigned number_in(std::string_view text) {
  unsigned value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::optional<int> read_number(const ProcFs& proc, std::string_view name) {
  const auto text = proc.read(name);
  if (!text) return std::nullopt;
  int value = 0;
  if (std::from_chars(text->data(), text->data() + text->size(), value).ec != std::errc{})
    return std::nullopt;
  return value;
}

}  // namespace

MachineFacts read_machine_facts(const ProcFs& proc) {
  MachineFacts out;
  if (const auto text = proc.read("cpuinfo")) {
    out.cpu_vendor = cpuinfo_field(*text, "vendor_id");
    out.cpu_model = cpuinfo_field(*text, "model name");
    out.cpu = {number_in(cpuinfo_field(*text, "cpu family")),
               number_in(cpuinfo_field(*text, "model")),
               number_in(cpuinfo_field(*text, "stepping"))};
    const std::string_view flags = cpuinfo_field(*text, "flags");
    out.flag_intel_pt = has_word(flags, "intel_pt");
    out.flag_bts = has_word(flags, "bts");
    out.flag_dtes64 = has_word(flags, "dtes64");
    out.hypervisor = has_word(flags, "hypervisor");
  }
  if (const auto release = proc.read("sys/kernel/osrelease")) out.kernel = trimmed(*release);
  out.container = container_kind(proc);
  out.perf_event_paranoid = read_number(proc, "sys/kernel/perf_event_paranoid");
  out.ptrace_scope = read_number(proc, "sys/kernel/yama/ptrace_scope");
  if (const auto text = proc.read("self/status")) {
    if (const auto status = parse_status(*text)) {
      const auto has = [&](unsigned bit) {
        return ((status->effective_capabilities >> bit) & 1U) != 0;
      };
      out.seccomp = status->seccomp;
      out.capability_perfmon = has(kCapPerfmon) || has(kCapSysAdmin);
      out.capability_ptrace = has(kCapSysPtrace);
    }
  }
  return out;
}

const MachineFacts& this_machine() {
  static const MachineFacts facts = read_machine_facts();
  return facts;
}

}  // namespace backtrail::tracee
