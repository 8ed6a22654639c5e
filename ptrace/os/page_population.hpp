// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Populates memory before it is written.

#include <cstdint>
#include <span>

namespace backtrail::tracee {

/// Populates all pages that begin in this writable memory with one call. Otherwise each 4 KiB would
/// cost a page fault, which takes ten times as long in virtual machines without nested paging. Does
/// nothing on kernels before 5.14 (madvise(2), MADV_POPULATE_WRITE).
void populate_pages(std::span<std::uint8_t> memory);

}  // namespace backtrail::tracee
