// SPDX-License-Identifier: Apache-2.0
#include "ptrace/os/plain_file.hpp"

#include <sys/stat.h>

namespace backtrail::tracee {

bool is_no_plain_file(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode);
}

}  // namespace backtrail::tracee
