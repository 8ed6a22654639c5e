// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Loads shared libraries when one of their functions is first called. Loading a library at start
/// would cost every command a tenth of a millisecond or more.
///
/// A stub with the name and type of the library's function is linked in its place:
///
///     int read_it(file* from) { return call_lazily<&read_it>("libfile.so.1", "read_it", from); }

namespace backtrail {

/// Returns the library's function. Throws std::runtime_error with the linker's message if there is
/// none.
[[nodiscard]] void* lazy_function(const char* library, const char* name);

template <auto kStub, typename... Arguments>
auto call_lazily(const char* library, const char* name, Arguments... arguments) {
  static const auto function =
      reinterpret_cast<decltype(kStub)>(lazy_function(library, name));  // NOLINT
  return function(arguments...);
}

}  // namespace backtrail
