#pragma once
/// @file
/// The page's own files, put into the program when it is built (decoder/export/page/).

#include <span>
#include <string_view>

namespace backtrail::decoder {

extern const std::string_view page_style;
extern const std::string_view page_body;
/// In this order. No part is longer than a compiler must take (65,536 characters).
extern const std::span<const std::string_view> page_scripts;

}  // namespace backtrail::decoder
