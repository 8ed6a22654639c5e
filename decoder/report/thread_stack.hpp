#pragma once
/// @file
/// The stack of a thread of a crash file.

#include "decoder/corefile/core_file.hpp"
#include "decoder/report/thread_calls.hpp"
#include "decoder/symbols/symbols.hpp"
#include "decoder/trace/code_reader.hpp"

namespace backtrail::decoder {

/// The frames of a thread, from the memory in the core or, where a page is in a file only, from
/// `code`. Where the thread went to a place that is no code, and nothing ran there, its caller is
/// what the call has just left on the stack.
[[nodiscard]] Stack thread_stack(const CoreFile& core, CodeReader& code, Symbols& symbols,
                                 const CoreThread& thread, const ThreadCalls& traced);

}  // namespace backtrail::decoder
