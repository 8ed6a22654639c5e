// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The affinity that programs inherit from the test.

#include <cstddef>
#include <fstream>
#include <string>

#include <sched.h>

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

/// Restricts the calling thread, and the programs that it starts, to one of its CPUs. Recorded
/// threads then stop at each miss, and the number of misses does not depend on time.
class OneCpu {
 public:
  OneCpu() {
    ::sched_getaffinity(0, sizeof before_, &before_);
    cpu_set_t one;
    CPU_ZERO(&one);
    std::size_t cpu = 0;
    while (cpu + 1 < CPU_SETSIZE && CPU_ISSET(cpu, &before_) == 0) ++cpu;
    CPU_SET(cpu, &one);
    ::sched_setaffinity(0, sizeof one, &one);
  }
  ~OneCpu() { ::sched_setaffinity(0, sizeof before_, &before_); }
  OneCpu(const OneCpu&) = delete;
  OneCpu& operator=(const OneCpu&) = delete;

 private:
  cpu_set_t before_{};
};

}  // namespace backtrail::test
