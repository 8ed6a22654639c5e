#include "arch/base/lazy_library.hpp"

#include <stdexcept>
#include <string>

#include <dlfcn.h>

namespace backtrail {

void* lazy_function(const char* library, const char* name) {
  // It stays loaded: whoever has asked for one function of it asks for more.
  void* const handle = ::dlopen(library, RTLD_NOW | RTLD_LOCAL);
  void* const found = handle == nullptr ? nullptr : ::dlsym(handle, name);
  if (found != nullptr) return found;
  const char* why = ::dlerror();
  if (handle != nullptr || why == nullptr) {
    throw std::runtime_error{std::string{library} + " lacks " + name};
  }
  throw std::runtime_error{std::string{why} + "; this needs it: install the package that has it " +
                           "(of Debian: libzydis4.0, libarchive13, libipt2)"};
}

}  // namespace backtrail
