// SPDX-License-Identifier: Apache-2.0
#include "ptrace/source/branch_source.hpp"

#include "decoder/cachelog/cache_log.hpp"

namespace backtrail::tracee {

std::unique_ptr<decoder::CacheLog> BranchSource::take_log_of_ended() {
  return nullptr;
}

}  // namespace backtrail::tracee
