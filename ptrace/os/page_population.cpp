#include "ptrace/os/page_population.hpp"

#include <bit>

#include <sys/mman.h>

namespace backtrail::tracee {

void populate_pages(std::span<std::uint8_t> memory) {
  constexpr std::uintptr_t kPageBytes = 4096;
  const std::uintptr_t before = std::bit_cast<std::uintptr_t>(memory.data()) % kPageBytes;
  (void)::madvise(memory.data() - before, before + memory.size(), MADV_POPULATE_WRITE);
}

}  // namespace backtrail::tracee
