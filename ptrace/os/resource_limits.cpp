// SPDX-License-Identifier: Apache-2.0
#include "ptrace/os/resource_limits.hpp"

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>

#include "ptrace/os/procfs.hpp"

namespace backtrail::tracee {
namespace {

/// Returns the name of the limit in /proc/PID/limits.
constexpr std::string_view name_of(LimitedResource resource) {
  switch (resource) {
    case LimitedResource::kAddressSpace:
      return "Max address space";
    case LimitedResource::kData:
      return "Max data size";
    case LimitedResource::kLockedMemory:
      break;
  }
  return "Max locked memory";
}

constexpr __rlimit_resource number_of(LimitedResource resource) {
  switch (resource) {
    case LimitedResource::kAddressSpace:
      return RLIMIT_AS;
    case LimitedResource::kData:
      return RLIMIT_DATA;
    case LimitedResource::kLockedMemory:
      break;
  }
  return RLIMIT_MEMLOCK;
}

}  // namespace

std::optional<rlimit> limit_of(pid_t pid, LimitedResource resource) {
  // The call is twenty times faster than the file, but needs the same user or a capability.
  if (rlimit limit{}; ::prlimit(pid, number_of(resource), nullptr, &limit) == 0) return limit;
  const auto text = ProcFs{}.read(pid, "limits");
  const std::string_view name = name_of(resource);
  std::size_t at = text ? text->find(name) : std::string::npos;
  if (at == std::string::npos) return std::nullopt;
  at += name.size();
  rlimit limit{RLIM_INFINITY, RLIM_INFINITY};  // "unlimited"
  for (rlim_t* value : {&limit.rlim_cur, &limit.rlim_max}) {
    at = std::min(text->find_first_not_of(' ', at), text->size());
    std::from_chars(text->data() + at, text->data() + text->size(), *value);
    at = std::min(text->find(' ', at), text->size());
  }
  return limit;
}

}  // namespace backtrail::tracee
