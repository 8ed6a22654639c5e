// SPDX-License-Identifier: Apache-2.0
#include "decoder/report/crash_signature.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace backtrail::decoder {
namespace {

/// Most functions in a signature.
constexpr std::size_t kMostFunctions = 5;

/// Prefixes of the names of run-time libraries.
constexpr std::array<std::string_view, 14> kLibraries{
    "libc.so",    "libc-",  "ld-linux", "ld-2",     "ld-musl", "libpthread", "libgcc_s",
    "libstdc++.", "libc++", "libasan",  "libubsan", "libtsan", "liblsan",    "[vdso]"};
/// Prefixes of functions that end a program and may be linked into the program's own file.
constexpr std::array<std::string_view, 32> kReporters{
    "abort",          "raise",           "gsignal",        "__GI_",
    "pthread_kill",   "__pthread_kill",  "__assert",       "__stack_chk_fail",
    "__fortify_fail", "__chk_fail",      "__libc_message", "malloc_printerr",
    "std::terminate", "__cxxabiv1::",    "__cxa_",         "__gnu_cxx::__verbose_terminate",
    "__asan",         "__ubsan",         "__tsan",         "__lsan",
    "__sanitizer",    "__interceptor",   "___interceptor", "__hwasan",
    "__msan",         "core::panicking", "std::panicking", "rust_begin_unwind",
    "rust_panic",     "__rust_",         "std::sys",       "std::process::abort"};

bool begins_with_one_of(std::string_view name, std::span<const std::string_view> beginnings) {
  return std::any_of(beginnings.begin(), beginnings.end(),
                     [&](std::string_view each) { return name.starts_with(each); });
}

bool is_of_run_time(const SignatureFrame& frame) {
  return is_run_time_library(frame.module) || begins_with_one_of(frame.function, kReporters);
}

}  // namespace

bool is_run_time_library(std::string_view module) {
  return begins_with_one_of(module, kLibraries);
}

std::string crash_signature(std::span<const SignatureFrame> frames, const std::string& end) {
  const auto own = std::find_if_not(frames.begin(), frames.end(), is_of_run_time);
  // Run-time functions are used only if there are no others.
  auto at = own == frames.end() ? frames.begin() : own;
  std::string out = end;
  std::string_view last;
  for (std::size_t count = 0; at != frames.end() && count < kMostFunctions; ++at) {
    if (at->function == last) continue;
    if (count != 0 && is_of_run_time(*at)) break;
    last = at->function;
    out += (count++ == 0 ? " " : " < ") + at->function;
    if (last == "main") break;
  }
  return out;
}

}  // namespace backtrail::decoder
