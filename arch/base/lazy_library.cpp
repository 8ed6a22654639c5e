// SPDX-License-Identifier: Apache-2.0
#include "arch/base/lazy_library.hpp"

#include <cctype>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>

#include <dlfcn.h>

namespace backtrail {
namespace {

/// Returns Debian's name of the package that contains a library (Debian Policy, 8.1).
std::string package_of(std::string_view library) {
  const std::size_t end = library.find(".so.");
  if (end == std::string_view::npos) return std::string{library};
  std::string package;
  for (const char c : library.substr(0, end)) {
    package += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  if (!package.empty() && std::isdigit(static_cast<unsigned char>(package.back())) != 0) {
    package += '-';
  }
  return package.append(library.substr(end + std::string_view{".so."}.size()));
}

}  // namespace

void* lazy_function(const char* library, const char* name) {
  // The library stays loaded, because more of its functions will be needed.
  void* const handle = ::dlopen(library, RTLD_NOW | RTLD_LOCAL);
  void* const found = handle == nullptr ? nullptr : ::dlsym(handle, name);
  if (found != nullptr) return found;
  const char* why = ::dlerror();
  if (handle != nullptr || why == nullptr) {
    throw std::runtime_error{std::string{library} + " lacks " + name};
  }
  std::string text{why};
  if (text.ends_with(std::strerror(EMFILE))) {  // NOLINT(concurrency-mt-unsafe)
    throw std::runtime_error{text + "; raise the limit: ulimit -n"};
  }
  throw std::runtime_error{text + "; this needs it: install the package that has it (Debian: " +
                           package_of(library) + ")"};
}

}  // namespace backtrail
