// SPDX-License-Identifier: Apache-2.0
#include "ptrace/os/page_population.hpp"

#include <cstddef>
#include <memory>

#include <sys/mman.h>

#include "arch/base/page.hpp"

namespace backtrail::tracee {

void populate_pages(std::span<std::uint8_t> memory) {
  void* begin = memory.data();
  std::size_t bytes = memory.size();
  if (std::align(kPageBytes, 1, begin, bytes) == nullptr) return;
  (void)::madvise(begin, bytes, MADV_POPULATE_WRITE);
}

}  // namespace backtrail::tracee
