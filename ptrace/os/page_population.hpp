#pragma once
/// @file
/// Memory that is there before it is written.

#include <cstdint>
#include <span>

namespace backtrail::tracee {

/// Makes all pages that begin in this writable memory present in one go, rather than by a page
/// fault every 4 KiB, which virtual machines without nested paging take ten times as long for.
/// Kernels before 5.14 refuse (madvise(2), MADV_POPULATE_WRITE), and the faults come.
void populate_pages(std::span<std::uint8_t> memory);

}  // namespace backtrail::tracee
