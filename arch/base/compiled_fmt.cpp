// SPDX-License-Identifier: Apache-2.0
// Compiles fmt into the program: Debian has it only as a shared library, but its headers contain
// everything. Instantiates the templates that the headers declare as extern and the program uses.

#include <fmt/format-inl.h>

namespace fmt::detail {

template dragonbox::decimal_fp<float> dragonbox::to_decimal(float value) noexcept;
template dragonbox::decimal_fp<double> dragonbox::to_decimal(double value) noexcept;
template locale_ref::locale_ref(const std::locale& locale);
template std::locale locale_ref::get<std::locale>() const;
template thousands_sep_result<char> thousands_sep_impl(locale_ref locale);
template char decimal_point_impl(locale_ref locale);
#if FMT_VERSION < 110000  // since then not a template
template void vformat_to(buffer<char>& out, string_view format,
                         basic_format_args<buffer_context<char>> arguments, locale_ref locale);
#endif

}  // namespace fmt::detail
