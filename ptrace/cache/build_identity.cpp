#include "ptrace/cache/build_identity.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/utsname.h>

namespace backtrail::tracee::cache {

const std::string& build_identity() {
  static const std::string identity = [] {
    struct stat facts {};
    utsname kernel{};
    ::uname(&kernel);
    if (::stat("/proc/self/exe", &facts) != 0) facts = {};
    return fmt::format("{} {}.{:09} {} {}", facts.st_size, facts.st_mtim.tv_sec,
                       facts.st_mtim.tv_nsec, static_cast<const char*>(kernel.release),
                       static_cast<const char*>(kernel.version));
  }();
  return identity;
}

}  // namespace backtrail::tracee::cache
