// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/program/build_identity.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

#include <fmt/format.h>
#include <sys/stat.h>

#include "arch/base/page.hpp"
#include "decoder/corefile/build_id.hpp"

/// The linker's symbol for the start of this program's file in memory. /proc/self/exe is not that
/// file if the dynamic linker was invoked to run this program.
// NOLINTNEXTLINE(*-reserved-identifier,cert-dcl*,*-avoid-c-arrays,*-identifier-naming)
extern "C" __attribute__((visibility("hidden"))) const std::uint8_t __ehdr_start[];

namespace backtrail::tracee::cache {
namespace {

std::string program_identity() {
  std::string id = decoder::build_id_of({&__ehdr_start[0], kPageBytes});
  if (!id.empty()) return id;
  struct stat facts {};
  if (::stat("/proc/self/exe", &facts) != 0) facts = {};
  return fmt::format("{} {}.{:09}", facts.st_size, facts.st_mtim.tv_sec, facts.st_mtim.tv_nsec);
}

}  // namespace

const std::string& build_identity() {
  static const std::string identity = program_identity();
  return identity;
}

}  // namespace backtrail::tracee::cache
