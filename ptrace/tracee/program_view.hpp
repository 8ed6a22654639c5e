// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Memory and code of one process as its program sees them: without the debugger's breakpoints.

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "arch/base/result.hpp"
#include "decoder/trace/code_reader.hpp"
#include "decoder/trace/insn_cache.hpp"
#include "ptrace/tracee/breakpoint_table.hpp"
#include "ptrace/tracee/process_memory.hpp"

namespace backtrail::tracee {

/// Owns the memory of a process, its breakpoints, and the instructions decoded there.
class ProgramView final : public decoder::CodeReader {
 public:
  explicit ProgramView(ProcessMemory memory)
      : memory_{std::move(memory)}, breakpoints_{memory_}, insns_{*this} {}
  ProgramView(const ProgramView&) = delete;
  ProgramView& operator=(const ProgramView&) = delete;
  ~ProgramView() override = default;

  // CodeReader. Masks breakpoints.
  [[nodiscard]] arch::Isa isa() const override { return isa_; }
  std::size_t read_code(TraceeAddr address, std::span<std::uint8_t> out) override;
  void set_isa(arch::Isa isa) { isa_ = isa; }

  /// Bytes of the instruction at `pc`; fewer where memory ends. A second call for the same `pc`
  /// reads no memory until forget_insn_bytes() or a write.
  std::span<const std::uint8_t> insn_bytes(TraceeAddr pc);
  void forget_insn_bytes() { glimpse_.reset(); }
  /// Makes `bytes` what insn_bytes(pc) returns next. They must be what is there.
  void note_insn_bytes(TraceeAddr pc, std::span<const std::uint8_t> bytes);

  std::size_t read(TraceeAddr address, std::span<std::uint8_t> out);
  /// Writes memory, but keeps what insns() knows.
  Result<void> write(TraceeAddr address, std::span<const std::uint8_t> data);

  [[nodiscard]] BreakpointTable& breakpoints() { return breakpoints_; }
  [[nodiscard]] decoder::InsnCache& insns() { return insns_; }

  /// Opens the memory of `pid` anew, after an exec.
  Result<void> reopen(pid_t pid) { return memory_.reopen(pid); }
  /// Forgets breakpoints and instructions of the program before an exec.
  void forget_program();
  /// Takes the breakpoints of the process that this one was forked from: its memory has them.
  void inherit_from(const ProgramView& parent);

 private:
  struct Glimpse {
    TraceeAddr at;
    std::array<std::uint8_t, arch::kMaxInsnBytes> bytes{};
    std::size_t available = 0;
  };

  arch::Isa isa_ = arch::Isa::kAmd64;
  ProcessMemory memory_;
  BreakpointTable breakpoints_;
  std::optional<Glimpse> glimpse_;
  decoder::InsnCache insns_;
};

}  // namespace backtrail::tracee
