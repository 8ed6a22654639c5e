// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The affinity that programs inherit from the test.

#include <fstream>
#include <string>

namespace backtrail::test {

/// Returns the hexadecimal digits of Cpus_allowed in /proc/self/status.
inline std::string allowed_cpus() {
  std::ifstream status{"/proc/self/status"};
  std::string word;
  while (status >> word && word != "Cpus_allowed:") {
  }
  status >> word;
  return word;
}

}  // namespace backtrail::test
