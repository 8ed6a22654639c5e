// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// rseq critical sections (rseq(2)): code that the kernel restarts if it was interrupted. The
/// kernel recognises the code by the program counter, so it must run at its native address and
/// without a stop: every stop, even of a single step, restarts it.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "arch/base/address.hpp"
#include "arch/base/result.hpp"

namespace backtrail::tracee {

class Process;
class Thread;

struct RestartableSection {
  TraceeAddr begin;  ///< First instruction, after the store that announces the section to the
                     ///< kernel.
  TraceeAddr end;    ///< End of the instruction that commits.
  TraceeAddr abort;
  /// A jump out of the section.
  struct Exit {
    TraceeAddr from;
    TraceeAddr to;
  };
  std::vector<Exit> exits;
  bool straight = true;  ///< No branch stays inside, so its path is known from its end.

  [[nodiscard]] bool contains(TraceeAddr pc) const { return begin <= pc && pc < end; }
  /// Returns all addresses that control can reach on leaving, `end` and `abort` first, each once.
  [[nodiscard]] std::vector<TraceeAddr> ways_out() const;
};

/// The rseq critical sections of one process found so far.
class RestartableSections {
 public:
  /// Reads a possible descriptor (struct rseq_cs) at `at`. Returns the section that it describes;
  /// null if there is none or it is known already.
  const RestartableSection* learn(Process& process, TraceeAddr at);
  /// Does this for the descriptor that the thread's struct rseq at `area` names at present.
  const RestartableSection* learn_from(Process& process, TraceeAddr area);

  [[nodiscard]] bool empty() const { return sections_.empty(); }
  [[nodiscard]] const RestartableSection* beginning_at(TraceeAddr pc) const;
  [[nodiscard]] const RestartableSection* containing(TraceeAddr pc) const;

  /// Notes that control left this pc for a place that no instruction explains.
  void suspect(TraceeAddr pc) { suspects_.insert(pc); }
  [[nodiscard]] bool suspected(TraceeAddr pc) const { return suspects_.contains(pc); }

 private:
  const RestartableSection* add(Process& process, TraceeAddr at, bool named_by_thread);

  std::map<TraceeAddr, RestartableSection> sections_;  ///< Sections by their start pc.
  std::set<TraceeAddr> suspects_;
};

}  // namespace backtrail::tracee
