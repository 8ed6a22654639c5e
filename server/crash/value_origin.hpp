// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Tells in words where a value of a dead program was last written, and from what.

#include <string>

#include "decoder/corefile/core_file.hpp"
#include "decoder/symbols/symbols.hpp"
#include "ptrace/core/program_memory.hpp"
#include "server/transport/explained.hpp"

namespace backtrail::server {

/// Follows the value back along the trace of the thread that died, from its end.
/// @param expression  A variable of the innermost function on the stack that has one of this name,
///                    or else a global one of its source file, or else any global one, which may be
///                    named as "file.cpp::space::name"; "$rax" for a general register; or
///                    "0xADDRESS" or "0xADDRESS:BYTES" for memory, 8 bytes if not said.
/// @return The text, with a line for each place, for a terminal. Errors: what is wrong with the
///         expression, or why nothing can be told.
[[nodiscard]] Explained<std::string> value_origin(const decoder::CoreFile& core,
                                                  tracee::ProgramMemory& memory,
                                                  decoder::Symbols& symbols,
                                                  const std::string& expression);

}  // namespace backtrail::server
