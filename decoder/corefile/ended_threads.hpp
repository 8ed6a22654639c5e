// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Threads of a core file that ended before it was written and left only their traces.

#include <cstddef>
#include <vector>

#include "decoder/corefile/core_file.hpp"
#include "decoder/corefile/trace_archive.hpp"

namespace backtrail::decoder {

/// Returns the threads that have records but no registers, in the order of the file's index, where
/// the recorder lists the newest first. The pc of each is the target of its newest record. Other
/// registers are 0, and there is no siginfo.
[[nodiscard]] std::vector<CoreThread> ended_threads(const CoreFile& core,
                                                    const TraceArchive& archive,
                                                    std::size_t most = ~std::size_t{0});

}  // namespace backtrail::decoder
