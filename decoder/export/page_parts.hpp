// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The page's own files from decoder/export/page/, embedded at build time.

#include <span>
#include <string_view>

namespace backtrail::decoder {

extern const std::string_view page_style;
extern const std::string_view page_body;
/// Scripts in load order. A part has at most 65,536 characters, which every compiler must accept.
extern const std::span<const std::string_view> page_scripts;

}  // namespace backtrail::decoder
