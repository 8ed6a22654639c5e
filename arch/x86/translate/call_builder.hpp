// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Translates the system calls that translated code makes itself.

#include <cstdint>
#include <optional>

#include "arch/x86/translate/block_writer.hpp"
#include "arch/x86/translate/side_exits.hpp"
#include "arch/x86/translate/value_recorder.hpp"

namespace backtrail::arch::x86::translate {

class CallBuilder {
 public:
  /// Borrows all four.
  CallBuilder(BlockWriter& writer, SideExits& side_exits, ValueRecorder& values,
              const TranslateOptions& options)
      : writer_{writer},
        emit_{writer.emit()},
        side_exits_{side_exits},
        values_{values},
        options_{options} {}

  enum class Made : std::uint8_t {
    kNot,  ///< No code was emitted: the call is left to the CPU.
    kComesBack,
    kDoesNot,  ///< The code after the call is not reached.
  };
  /// Emits the call.
  /// @param number  The low 32 bits of rax, if they are known.
  Made call(const SourceInsn& insn, std::optional<std::uint32_t> number);

 private:
  void make(const SourceInsn& insn, std::optional<std::uint32_t> number);
  void return_from_handler(const SourceInsn& insn);
  void copy_frame();

  BlockWriter& writer_;
  Emitter& emit_;
  SideExits& side_exits_;
  ValueRecorder& values_;
  const TranslateOptions& options_;
};

}  // namespace backtrail::arch::x86::translate
