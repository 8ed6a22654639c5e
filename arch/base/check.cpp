// SPDX-License-Identifier: Apache-2.0
#include "arch/base/check.hpp"

#include <cstdio>
#include <cstdlib>

namespace backtrail {

void check_failed(const char* condition, const char* file, int line) noexcept {
  std::fprintf(stderr, "backtrail: internal error: %s:%d: %s\n", file, line, condition);
  std::abort();
}

}  // namespace backtrail
