// SPDX-License-Identifier: Apache-2.0
// Reads source files for the page.
#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "decoder/export/html_page.hpp"

namespace backtrail::decoder {
namespace {

constexpr std::uintmax_t kMostBytes = 4U << 20U;

bool looks_like_source(const std::filesystem::path& path) {
  static constexpr std::array<std::string_view, 30> kSuffixes{
      ".c",  ".h",  ".cc",  ".hh",  ".cpp", ".hpp", ".cxx",   ".hxx", ".c++", ".h++",
      ".C",  ".H",  ".ipp", ".tpp", ".tcc", ".inl", ".inc",   ".S",   ".s",   ".asm",
      ".rs", ".go", ".d",   ".f90", ".zig", ".nim", ".swift", ".pas", ".m",   ".y"};
  const std::string suffix = path.extension().string();
  if (suffix.empty()) return path.string().find("/c++/") != std::string::npos;
  return std::find(kSuffixes.begin(), kSuffixes.end(), suffix) != kSuffixes.end();
}

}  // namespace

std::string read_source(const std::string& path, const std::vector<std::string>& roots) {
  if (!path.starts_with('/')) return {};
  std::vector<std::string> places = roots;
  for (std::string& place : places) place += path;
  places.push_back(path);
  for (const std::string& place : places) {
    std::error_code error;
    // A link may lead anywhere, so its target must look like a source too.
    const std::filesystem::path real = std::filesystem::canonical(place, error);
    if (error || !looks_like_source(place) || !looks_like_source(real)) continue;
    if (!std::filesystem::is_regular_file(real, error)) continue;
    if (std::filesystem::file_size(real, error) > kMostBytes || error) continue;
    std::ifstream file{real, std::ios::binary};
    return {std::istreambuf_iterator<char>{file}, {}};
  }
  return {};
}

}  // namespace backtrail::decoder
