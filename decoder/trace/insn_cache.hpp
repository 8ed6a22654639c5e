#pragma once
/// @file
/// Instruction facts by address, for one address space.

#include <optional>
#include <unordered_map>

#include "arch/insn.hpp"
#include "decoder/trace/code_reader.hpp"

namespace backtrail::decoder {

/// Decodes each instruction once. The owner says when code has changed.
class InsnCache {
 public:
  /// `code` is borrowed and must outlive the cache.
  explicit InsnCache(CodeReader& code) : code_{code} {}

  /// Facts of the instruction at `pc`; length 0 where there is none or it cannot be read (that is
  /// not remembered: memory may be mapped later).
  const arch::InsnFacts& at(TraceeAddr pc);

  /// Code in [begin, end) may have changed. Bumps generation().
  void invalidate(TraceeAddr begin, TraceeAddr end);
  void invalidate_all();
  /// Changes whenever facts handed out before may be stale; for caches built on this one.
  [[nodiscard]] std::uint64_t generation() const { return generation_; }
  [[nodiscard]] CodeReader& code() { return code_; }

 private:
  CodeReader& code_;
  std::unordered_map<TraceeAddr, arch::InsnFacts> facts_;
  std::uint64_t generation_ = 0;
};

}  // namespace backtrail::decoder
