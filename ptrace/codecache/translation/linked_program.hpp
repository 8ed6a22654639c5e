// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The modules of a program, linked as the dynamic linker will link them; for the translation of
/// what the program will probably execute.

#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "arch/base/address.hpp"
#include "ptrace/codecache/program/executable_map.hpp"
#include "ptrace/codecache/program/linked_module.hpp"
#include "ptrace/codecache/translation/code_facts.hpp"

namespace backtrail::tracee::cache {

class LinkedProgram {
 public:
  /// Reads the files that are mapped at the ranges of the process. Those that cannot be read are
  /// left out.
  LinkedProgram(pid_t pid, std::vector<ExecutableMap::Range> ranges);

  /// Functions that will probably be executed: the entry point, initializers, those of the dynamic
  /// linker, and those that data of a small program points to.
  [[nodiscard]] const std::vector<TraceeAddr>& starts() const { return starts_; }
  /// The functions in it borrow this object.
  [[nodiscard]] AheadFacts facts() const;

 private:
  void add(const LinkedModule& module);
  void add_starts(const LinkedModule& module, const ExecutableMap::Range& range, bool executable);
  void link();

  std::vector<TraceeAddr> starts_;
  std::vector<TraceeAddr> functions_;
  std::unordered_map<std::string, TraceeAddr> exports_;
  std::vector<std::pair<TraceeAddr, std::string>> imports_;
  std::unordered_map<TraceeAddr, TraceeAddr> pointers_;
};

}  // namespace backtrail::tracee::cache
