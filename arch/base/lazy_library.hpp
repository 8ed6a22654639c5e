#pragma once
/// @file
/// Shared libraries that are loaded when the first of their functions is called: each would cost
/// every start of every command a tenth of a millisecond and more.
///
/// A stub has the name and the type of the library's function and is linked in its stead:
///
///     int read_it(file* from) { return call_lazily<&read_it>("libfile.so.1", "read_it", from); }

namespace backtrail {

/// The library's function. Throws std::runtime_error, with the linker's words, when there is none.
[[nodiscard]] void* lazy_function(const char* library, const char* name);

template <auto kStub, typename... Arguments>
auto call_lazily(const char* library, const char* name, Arguments... arguments) {
  static const auto function =
      reinterpret_cast<decltype(kStub)>(lazy_function(library, name));  // NOLINT
  return function(arguments...);
}

}  // namespace backtrail
