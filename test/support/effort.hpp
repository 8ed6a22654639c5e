/// How much a test does in this kind of build.
#pragma once

namespace backtrail::test {

/// Whether AddressSanitizer watches: then a test takes some eight times as long.
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

/// How many of `all` random cases this build tries. What differs between cases is tried by the
/// builds that are quick; sanitizers look for faults that the code has in most of them.
constexpr unsigned cases(unsigned all) {
  return kSanitized ? all / 6 : all;
}

}  // namespace backtrail::test
