// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Result<T>: a value or an Error. The interface follows std::expected, to allow a later
/// replacement.

#include <utility>

#include <tl/expected.hpp>

#include "arch/base/error.hpp"

namespace backtrail {

template <typename T>
class [[nodiscard]] Result : public tl::expected<T, Error> {
 public:
  using tl::expected<T, Error>::expected;
  // tl::unexpected converts, so that `return fail(...)` works for every T.
};

/// Makes a failed Result of any type.
[[nodiscard]] inline tl::unexpected<Error> fail(Error e) {
  return tl::unexpected<Error>{e};
}
[[nodiscard]] inline tl::unexpected<Error> fail(TraceErrc e, const char* operation,
                                                std::uint64_t detail = 0) {
  return tl::unexpected<Error>{make_error(e, operation, detail)};
}
[[nodiscard]] inline tl::unexpected<Error> fail_errno(const char* operation,
                                                      std::uint64_t detail = 0) {
  return tl::unexpected<Error>{errno_error(operation, detail)};
}

}  // namespace backtrail

#define BT_CONCAT_INNER(a, b) a##b
#define BT_CONCAT(a, b) BT_CONCAT_INNER(a, b)

// NOLINTBEGIN(bugprone-macro-parentheses): a declaration cannot be put in parentheses.
/// `BT_TRY(auto x, f());` declares x from the value of f(), or returns its error.
#define BT_TRY(declaration, expression) \
  BT_TRY_IMPL(BT_CONCAT(bt_result_, __LINE__), declaration, expression)
#define BT_TRY_IMPL(temporary, declaration, expression)                           \
  auto temporary = (expression);                                                  \
  if (!temporary) return ::tl::unexpected<::backtrail::Error>{temporary.error()}; \
  declaration = std::move(*temporary)
// NOLINTEND(bugprone-macro-parentheses)

/// `BT_CHECKED(f());` returns the error of f() if it fails.
#define BT_CHECKED(expression)                                        \
  do {                                                                \
    if (auto bt_result = (expression); !bt_result)                    \
      return ::tl::unexpected<::backtrail::Error>{bt_result.error()}; \
  } while (false)
