// SPDX-License-Identifier: Apache-2.0
/// The amount of work that a test does in this kind of build.
#pragma once

#include <cstddef>
#include <vector>

namespace backtrail::test {

/// True with AddressSanitizer, under which tests take about eight times as long.
#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kSanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif
#else
inline constexpr bool kSanitized = false;
#endif

/// Returns how many of `all` random cases this build tries. Quick builds try all; sanitizers need
/// fewer, because the faults that they find occur in most cases.
constexpr unsigned cases(unsigned all) {
  return kSanitized ? all / 6 : all;
}

/// Returns the cases of a parameterised test that this build runs: quick builds run all, sanitizers
/// every nth, because the others run the same code.
template <typename Case>
std::vector<Case> every(std::size_t nth, const std::vector<Case>& all) {
  if (!kSanitized) return all;
  std::vector<Case> out;
  for (std::size_t i = 0; i < all.size(); i += nth) out.push_back(all[i]);
  return out;
}

}  // namespace backtrail::test
