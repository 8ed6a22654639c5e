// SPDX-License-Identifier: Apache-2.0
#include "server/record/attachment.hpp"

#include <filesystem>
#include <system_error>

namespace backtrail::server {

std::string attachment_line(const std::string& path, const std::string& project) {
  if (path.empty() || path.find('\n') != std::string::npos || path.find("]]") != std::string::npos)
    return {};
  std::error_code error;
  const std::filesystem::path file = std::filesystem::absolute(path, error).lexically_normal();
  if (error) return {};
  const std::filesystem::path below = file.lexically_relative(project);
  const bool inside = !project.empty() && !below.empty() && *below.begin() != "..";
  return "[[ATTACHMENT|" + (inside ? below : file).string() + "]]\n";
}

}  // namespace backtrail::server
