// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Unwinds the stack of a thread of a crash file.

#include "decoder/corefile/core_file.hpp"
#include "decoder/report/thread_calls.hpp"
#include "decoder/symbols/symbols.hpp"
#include "decoder/trace/code_reader.hpp"

namespace backtrail::decoder {

/// Returns the frames of a thread. Memory comes from the core, or from `code` for pages that only a
/// file has. If the thread called an address without code, the frame of its caller comes from the
/// return address that the call pushed.
[[nodiscard]] Stack thread_stack(const CoreFile& core, CodeReader& code, Symbols& symbols,
                                 const CoreThread& thread, const ThreadCalls& traced);

}  // namespace backtrail::decoder
