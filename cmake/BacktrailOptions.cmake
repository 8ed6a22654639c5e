# SPDX-License-Identifier: Apache-2.0
# Compile and link options, as interface targets.

# Files compiled as one text share a namespace, in which any name may shadow another file's.
set(BT_SHADOWS -Wshadow)
if(BT_UNITE)
  set(BT_SHADOWS $<$<CXX_COMPILER_ID:GNU>:-Wshadow=local>)
endif()
add_library(bt_warnings INTERFACE)
target_compile_options(
  bt_warnings
  INTERFACE -Wall
            -Wextra
            -Wpedantic
            ${BT_SHADOWS}
            -Wconversion
            -Wsign-conversion
            -Wold-style-cast
            -Wnon-virtual-dtor
            -Woverloaded-virtual
            -Wcast-align
            -Wformat=2
            -Wimplicit-fallthrough
            $<$<BOOL:${BT_WERROR}>:-Werror>)

add_library(bt_sanitizers INTERFACE)
if(BT_SANITIZE)
  target_compile_options(
    bt_sanitizers INTERFACE
    -fsanitize=${BT_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all
    $<$<CXX_COMPILER_ID:Clang>:-fsanitize-ignorelist=${PROJECT_SOURCE_DIR}/cmake/uninstrumented.txt>)
  target_link_options(bt_sanitizers INTERFACE -fsanitize=${BT_SANITIZE})
endif()

if(BT_FUZZ)
  # The libraries report coverage to the fuzzer.
  target_compile_options(bt_sanitizers INTERFACE -fsanitize=fuzzer-no-link)
  target_link_options(bt_sanitizers INTERFACE -fsanitize=fuzzer-no-link)
endif()

# Common to all targets: `#include "folder/file.hpp"` from the root, warnings, sanitizers.
add_library(bt_common INTERFACE)
target_include_directories(bt_common INTERFACE "${PROJECT_SOURCE_DIR}")
target_link_libraries(bt_common INTERFACE bt_warnings bt_sanitizers)
