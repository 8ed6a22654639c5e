#include "ptrace/os/page_population.hpp"

#include <bit>

#include <sys/mman.h>

namespace backtrail::tracee {

void populate_pages(std::span<const std::uint8_t> memory) {
  constexpr std::uintptr_t kPageBytes = 4096;
  if (memory.empty()) return;
  const auto begin = std::bit_cast<std::uintptr_t>(memory.data()) & ~(kPageBytes - 1);
  const auto last = std::bit_cast<std::uintptr_t>(memory.data() + memory.size() - 1);
  const std::uintptr_t bytes = (last & ~(kPageBytes - 1)) + kPageBytes - begin;
  (void)::madvise(std::bit_cast<void*>(begin), bytes, MADV_POPULATE_WRITE);
}

}  // namespace backtrail::tracee
