#pragma once
/// @file
/// Restartable sequences (rseq(2)): code that the kernel begins anew when it was interrupted. It
/// knows that by the program counter alone, so this code must run where it is, and unstopped: every
/// stop, also that of a single step, restarts it.

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
  TraceeAddr begin;  ///< Just behind the store that tells the kernel of it.
  TraceeAddr end;    ///< Behind the instruction that commits.
  TraceeAddr abort;
  /// Its jumps to elsewhere.
  struct Exit {
    TraceeAddr from;
    TraceeAddr to;
  };
  std::vector<Exit> exits;
  bool straight =
      true;  ///< No branch leads to another place of it: its path is known from its end.

  [[nodiscard]] bool contains(TraceeAddr pc) const { return begin <= pc && pc < end; }
  /// Where control gets to when it leaves, the two ends first, each once.
  [[nodiscard]] std::vector<TraceeAddr> ways_out() const;
};

/// Those of one process, as far as they have been found.
class RestartableSections {
 public:
  /// A descriptor (struct rseq_cs) may be at `at`. The section that it describes, if that is new.
  const RestartableSection* learn(Process& process, TraceeAddr at);
  /// The same of the descriptor that the thread's `area` names at present.
  const RestartableSection* learn_from(Process& process, TraceeAddr area);

  [[nodiscard]] bool empty() const { return sections_.empty(); }
  [[nodiscard]] const RestartableSection* beginning_at(TraceeAddr pc) const;
  [[nodiscard]] const RestartableSection* containing(TraceeAddr pc) const;

  /// Control went from here to a place that no instruction explains.
  void suspect(TraceeAddr pc) { suspects_.insert(pc); }
  [[nodiscard]] bool suspected(TraceeAddr pc) const { return suspects_.contains(pc); }

 private:
  const RestartableSection* add(Process& process, TraceeAddr at, bool named_by_thread);

  std::map<TraceeAddr, RestartableSection> sections_;  ///< By where they begin.
  std::set<TraceeAddr> suspects_;
};

}  // namespace backtrail::tracee
