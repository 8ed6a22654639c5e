// SPDX-License-Identifier: Apache-2.0
#include "arch/base/address.hpp"

#include <fmt/format.h>

fmt::format_context::iterator fmt::formatter<backtrail::TraceeAddr>::format(backtrail::TraceeAddr a,
                                                                            format_context& ctx) {
  return fmt::format_to(ctx.out(), "{:#x}", a.value());
}
