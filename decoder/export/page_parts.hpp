#pragma once
/// @file
/// The page's own files, put into the program when it is built (decoder/export/page/).

#include <string_view>

namespace backtrail::decoder {

extern const std::string_view page_style;
extern const std::string_view page_body;
extern const std::string_view page_script;

}  // namespace backtrail::decoder
