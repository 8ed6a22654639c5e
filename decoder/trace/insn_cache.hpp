// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Caches decoded instructions of one address space.

#include <optional>
#include <unordered_map>

#include "arch/insn.hpp"
#include "decoder/trace/code_reader.hpp"

namespace backtrail::decoder {

/// Decodes each instruction once. The owner reports code changes.
class InsnCache {
 public:
  /// Borrows `code`, which must outlive the cache.
  explicit InsnCache(CodeReader& code) : code_{code} {}

  /// Returns the facts of the instruction at `pc`; length 0 if there is none or it is unreadable.
  /// Failures are not cached, because memory may be mapped later.
  const arch::InsnFacts& at(TraceeAddr pc);

  /// Reports that code in [begin, end) may have changed. Increases generation().
  void invalidate(TraceeAddr begin, TraceeAddr end);
  void invalidate_all();
  /// Changes whenever facts returned earlier may be stale. For caches built on this one.
  [[nodiscard]] std::uint64_t generation() const { return generation_; }
  [[nodiscard]] CodeReader& code() { return code_; }

 private:
  CodeReader& code_;
  std::unordered_map<TraceeAddr, arch::InsnFacts> facts_;
  std::uint64_t generation_ = 0;
};

}  // namespace backtrail::decoder
