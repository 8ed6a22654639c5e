// SPDX-License-Identifier: Apache-2.0
#include "ptrace/os/remote_read.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <climits>

#include <sys/uio.h>

namespace backtrail::tracee {

std::size_t read_parts(pid_t tid, std::span<const MemoryPart> parts, std::span<std::uint8_t> out) {
  std::array<iovec, IOV_MAX> remote;
  std::size_t done = 0;
  while (!parts.empty()) {
    const auto some = parts.first(std::min(parts.size(), remote.size()));
    std::size_t wanted = 0;
    for (std::size_t i = 0; i < some.size(); ++i) {
      remote.at(i) = {std::bit_cast<void*>(some[i].address), some[i].bytes};
      wanted += some[i].bytes;
    }
    const iovec local{out.data() + done, wanted};
    const ssize_t got = ::process_vm_readv(tid, &local, 1, remote.data(), some.size(), 0);
    if (got > 0) done += static_cast<std::size_t>(got);
    if (got < 0 || static_cast<std::size_t>(got) != wanted) break;
    parts = parts.subspan(some.size());
  }
  return done;
}

}  // namespace backtrail::tracee
