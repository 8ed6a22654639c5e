// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Propagates known bits through a graph until nothing changes.

#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>
#include <vector>

#include "decoder/values/barriers.hpp"
#include "decoder/values/memory_lists.hpp"
#include "decoder/values/stack_links.hpp"
#include "decoder/values/system_call_effects.hpp"
#include "decoder/values/value_graph.hpp"

namespace backtrail::decoder::values {

/// A range of addresses that may have been mapped differently before step `step`.
struct MappingChange {
  std::uint32_t step = 0;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

/// The newest write to some bytes, or what may have been one.
struct LastWrite {
  enum class Kind : std::uint8_t {
    kStore,     ///< The instruction at `step` stores.
    kMapping,   ///< The system call at `step` may have made the memory anew.
    kSignal,    ///< A signal's frame was written before `step`.
    kHalfDone,  ///< The instruction at the end, `step`, may have stored before it was stopped.
    kOthers,    ///< Others may write the memory; `step` is the position.
  };
  Kind kind = Kind::kStore;
  std::size_t step = 0;
  std::uint32_t access = 0;  ///< Number among the accesses of the step; for kStore.
  bool is_certain = false;   ///< False if the place that was written is not known.
};

class ValueSolver {
 public:
  /// `changes` are the mapping changes known beforehand.
  ValueSolver(ValueGraph& graph, EndState& end, std::vector<MappingChange> changes,
              std::vector<StackLink> links);

  void solve();

  /// After solve(): returns false if facts contradict each other. No value of the graph may be used
  /// then.
  [[nodiscard]] bool consistent() const { return graph_.consistent; }
  /// Returns the known bits of the 8 bytes at `granule` before step `position`.
  [[nodiscard]] Known memory(std::size_t position, std::uint64_t granule);
  /// Returns the address of an access; nullopt while unknown.
  [[nodiscard]] std::optional<std::uint64_t> address(std::uint32_t access) const;

  /// After solve(): returns the newest write to [address, address + bytes) before step `position`;
  /// nullopt if the graph has none. Stores to unknown addresses count unless the bytes there differ
  /// from theirs.
  [[nodiscard]] std::optional<LastWrite> last_write(std::size_t position, std::uint64_t address,
                                                    std::uint64_t bytes);

  /// Why the solution is invalid before a step.
  struct Flaw {
    std::uint32_t step = 0;
    /// A mapping change that a new solution must know beforehand; nullopt: it must not reach before
    /// `step`.
    std::optional<MappingChange> change;
    bool links = false;  ///< Only links by the stack must not reach before `step`.
  };
  /// Returns the latest assumption about system calls that proved wrong; nullopt if none did.
  [[nodiscard]] std::optional<Flaw> flaw(const Window& window);
  /// Returns all mapping changes of the window. Call after flaw() has found none.
  [[nodiscard]] const std::vector<MappingChange>& mapping_changes() const { return changes_; }
  /// Returns true if a system call of the window may have removed a mapping.
  [[nodiscard]] bool removes_mappings() const;

 private:
  enum class Place : std::uint8_t { kOpen, kListed, kConstant, kUnstable };
  struct Part {
    std::uint64_t granule;
    std::uint64_t bits;
  };

  void index_uses();
  void enqueue(std::uint32_t item);
  void learn(Var var, std::uint64_t value, std::uint64_t mask);
  void relate(const Node& node);
  void handle_access(std::uint32_t access);
  void place(std::uint32_t access, std::uint64_t address);
  void narrow(std::uint32_t access);
  void handle_range(std::uint32_t access);
  void handle_frame(const SignalFrame& frame);
  void handle_call(std::size_t index);
  void handle_link(const StackLink& link);
  [[nodiscard]] bool leaves_memory(std::uint32_t access) const;
  [[nodiscard]] std::uint64_t may_have_written(std::uint32_t suspect, const Access& load,
                                               std::uint64_t alive) const;
  void settle_range(std::uint32_t access, std::uint64_t begin, std::uint64_t bytes);
  void wake_around(std::uint32_t access);
  void make_refutable(std::uint32_t access);
  [[nodiscard]] std::uint64_t survivors(std::uint32_t from, std::uint32_t to, std::uint64_t granule,
                                        const Known& what) const;
  [[nodiscard]] bool may_touch(std::uint32_t access, std::uint64_t address, std::uint64_t bytes);
  void spread(std::uint32_t access);
  void spread_forwards(std::uint32_t access, std::uint64_t granule);
  void spread_backwards(std::uint32_t access, std::uint64_t granule);
  void exchange(std::uint32_t one, std::uint32_t other, std::uint64_t granule, std::uint64_t bits);
  [[nodiscard]] Known content(std::uint32_t access, std::uint64_t granule) const;
  void take(std::uint32_t access, std::uint64_t granule, Known what, std::uint64_t bits);
  Known final_content(std::uint64_t granule);
  [[nodiscard]] Place judge(std::int64_t step, std::uint64_t address, unsigned size);
  [[nodiscard]] std::array<Part, 2> parts(std::uint32_t access) const;
  [[nodiscard]] std::optional<Flaw> mapping_flaw(const Window& window, const SystemCall& call,
                                                 const CallEffects& effects);

  ValueGraph& graph_;
  EndState& end_;
  std::vector<MappingChange> changes_;
  Barriers barriers_;
  IndexSet hard_;  ///< Barriers to unknown addresses whose value is unknown, too.
  MemoryLists lists_;
  std::vector<std::uint64_t> address_;  ///< By access.
  std::vector<Place> place_;            ///< By access.
  std::unordered_map<std::uint64_t, Known> image_;
  std::vector<std::optional<CallEffects>> effects_;  ///< By system call.
  std::vector<StackLink> links_;
  /// Links by those of their suspects that are not plain stores.
  std::unordered_multimap<std::uint32_t, std::uint32_t> links_across_;

  // Items of the work list: nodes, then accesses, then system calls, then frames,
  // then links.
  std::uint32_t first_access_item_ = 0;
  std::uint32_t first_call_item_ = 0;
  std::uint32_t first_frame_item_ = 0;
  std::uint32_t first_link_item_ = 0;
  std::vector<std::uint32_t> first_use_;  ///< Index into uses_, by variable.
  std::vector<std::uint32_t> uses_;
  std::vector<bool> queued_;
  std::deque<std::uint32_t> queue_;
};

}  // namespace backtrail::decoder::values
