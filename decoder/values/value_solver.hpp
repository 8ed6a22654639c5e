// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Propagates known bits through a graph until nothing changes.

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "decoder/values/memory_spread.hpp"
#include "decoder/values/stack_links.hpp"
#include "decoder/values/system_call_effects.hpp"
#include "decoder/values/value_graph.hpp"
#include "decoder/values/value_queue.hpp"
#include "decoder/values/window_memory.hpp"

namespace backtrail::decoder::values {

class ValueSolver {
 public:
  /// `changes` are the mapping changes known beforehand.
  ValueSolver(ValueGraph& graph, EndState& end, std::vector<MappingChange> changes,
              std::vector<StackLink> links);
  ValueSolver(const ValueSolver&) = delete;
  ValueSolver& operator=(const ValueSolver&) = delete;
  ~ValueSolver() = default;

  void solve();

  /// After solve(): returns false if facts contradict each other. No value of the graph may be used
  /// then.
  [[nodiscard]] bool consistent() const { return graph_.consistent; }
  /// After solve(): answers questions about memory.
  [[nodiscard]] WindowMemory& memory() { return memory_; }
  /// Returns the address of an access; nullopt while unknown.
  [[nodiscard]] std::optional<std::uint64_t> address(std::uint32_t access) const;

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
  [[nodiscard]] const std::vector<MappingChange>& mapping_changes() const {
    return memory_.changes();
  }
  /// Returns true if a system call of the window may have removed a mapping.
  [[nodiscard]] bool removes_mappings() const;

 private:
  void relate(const Node& node);
  void handle_access(std::uint32_t access);
  void place(std::uint32_t access, std::uint64_t address);
  void narrow(std::uint32_t access);
  void handle_range(std::uint32_t access);
  void settle_range(std::uint32_t access, std::uint64_t begin, std::uint64_t bytes);
  void handle_frame(const SignalFrame& frame);
  void handle_call(std::size_t index);
  void wake_before(std::uint32_t access);
  void handle_link(const StackLink& link);
  [[nodiscard]] bool leaves_memory(std::uint32_t access) const;
  [[nodiscard]] std::uint64_t may_have_written(std::uint32_t suspect, const Access& load,
                                               std::uint64_t alive) const;
  [[nodiscard]] std::optional<Flaw> mapping_flaw(const Window& window, const SystemCall& call,
                                                 const CallEffects& effects);

  ValueGraph& graph_;
  EndState& end_;
  std::vector<std::optional<CallEffects>> effects_;  ///< By system call.
  std::vector<StackLink> links_;
  /// Links by those of their suspects that are not plain stores.
  std::unordered_multimap<std::uint32_t, std::uint32_t> links_across_;
  WindowMemory memory_;
  ValueQueue queue_;
  MemorySpread spread_;
};

}  // namespace backtrail::decoder::values
