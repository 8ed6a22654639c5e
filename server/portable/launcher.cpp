// SPDX-License-Identifier: Apache-2.0
// bin/backtrail of the portable folder, linked statically. Runs ../lib/backtrail/backtrail with the
// dynamic linker and the C library in that folder, independent of the machine's.

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include <unistd.h>

#include "server/portable/loader_environment.hpp"

namespace {

constexpr int kCannotRun = 127;

bool is_for_linker(std::string_view variable) {
  return variable.starts_with("LD_") || variable.starts_with("GLIBC_TUNABLES=");
}

/// Returns the folder that contains bin/, with symbolic links followed; empty if unknown.
std::string portable_folder() {
  std::string file(PATH_MAX, '\0');
  const ssize_t bytes = ::readlink("/proc/self/exe", file.data(), file.size());
  if (bytes <= 0) return {};
  file.resize(static_cast<std::size_t>(bytes));
  for (int level = 0; level < 2; ++level) file.resize(std::min(file.size(), file.rfind('/')));
  return file;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> out;
  out.reserve(strings.size() + 1);
  for (std::string& string : strings) out.push_back(string.data());
  out.push_back(nullptr);
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string folder = portable_folder();
  if (folder.empty()) {
    std::fputs("backtrail: cannot find itself: /proc is not mounted; mount it\n", stderr);
    return kCannotRun;
  }
  const std::string libraries = folder + "/lib/backtrail";
  std::vector<std::string> arguments{
      libraries + "/" + BT_LINKER,      "--library-path",        libraries, "--argv0",
      argc > 0 ? argv[0] : "backtrail", libraries + "/backtrail"};
  arguments.insert(arguments.end(), argv + std::min(argc, 1), argv + argc);
  std::vector<std::string> environment;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    environment.push_back((is_for_linker(*variable) ? backtrail::server::kWaitingPrefix : "") +
                          std::string{*variable});
  }
  ::execve(arguments[0].c_str(), pointers(arguments).data(), pointers(environment).data());
  std::fprintf(stderr, "backtrail: cannot run %s: %s; unpack the whole archive again\n",
               arguments[0].c_str(), std::strerror(errno));
  return kCannotRun;
}
