#pragma once
/// @file
/// Threads of a core file that had ended before it was written: only their traces are left.

#include <cstddef>
#include <vector>

#include "decoder/corefile/core_file.hpp"
#include "decoder/corefile/trace_archive.hpp"

namespace backtrail::decoder {

/// The threads that have records and no registers, in the order of the file's index: the recorder
/// lists the newest first. The pc of each is where its newest record leads; every other register is
/// 0, there is no siginfo.
[[nodiscard]] std::vector<CoreThread> ended_threads(const CoreFile& core,
                                                    const TraceArchive& archive,
                                                    std::size_t most = ~std::size_t{0});

}  // namespace backtrail::decoder
