// SPDX-License-Identifier: Apache-2.0
#include "server/portable/loader_environment.hpp"

#include <array>
#include <cstring>
#include <string_view>

#include <sys/prctl.h>

namespace backtrail::server {

void restore_loader_environment(char** environment) {
  const std::string_view prefix{kWaitingPrefix};
  for (char** variable = environment; *variable != nullptr; ++variable) {
    if (std::string_view{*variable}.starts_with(prefix)) *variable += prefix.size();
  }
}

void restore_process_name(const char* command) {
  constexpr std::size_t kNameBytes = 16;  // PR_GET_NAME(2const)
  std::array<char, kNameBytes> name{};
  if (::prctl(PR_GET_NAME, name.data()) != 0 || !std::string_view{name.data()}.starts_with("ld-")) {
    return;
  }
  const char* const slash = std::strrchr(command, '/');
  ::prctl(PR_SET_NAME, slash == nullptr ? command : slash + 1);
}

}  // namespace backtrail::server
