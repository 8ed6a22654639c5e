# SPDX-License-Identifier: Apache-2.0
# Library headers that many files include, compiled once for each kind of target. Use a compiler
# cache instead if there is one: it is faster, and builds without precompiled headers find missing
# includes.
set(BT_OFTEN_INCLUDED
    <algorithm> <array> <cerrno> <charconv> <chrono> <csignal> <cstdint> <cstdio> <cstdlib>
    <cstring> <deque> <filesystem> <fstream> <functional> <map> <memory> <optional> <set> <span>
    <sstream> <string> <string_view> <tuple> <unordered_map> <utility> <variant> <vector>
    <fmt/format.h> <tl/expected.hpp>)

# bt_precompile(PCH LIBRARIES ... HEADERS ...): defines a target whose headers others use.
function(bt_precompile pch)
  cmake_parse_arguments(arg "" "" "LIBRARIES;HEADERS" ${ARGN})
  file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/${pch}.cpp" CONTENT "")
  add_library(${pch} OBJECT "${PROJECT_BINARY_DIR}/${pch}.cpp")
  target_link_libraries(${pch} PRIVATE ${arg_LIBRARIES})
  target_precompile_headers(${pch} PRIVATE ${arg_HEADERS})
endfunction()

# bt_use_precompiled(PCH FOLDER): applies PCH to all libraries and programs that FOLDER itself
# defines.
function(bt_use_precompiled pch folder)
  get_property(targets DIRECTORY "${folder}" PROPERTY BUILDSYSTEM_TARGETS)
  foreach(target ${targets})
    get_target_property(type ${target} TYPE)
    if(type MATCHES "^(STATIC_LIBRARY|EXECUTABLE)$")
      target_precompile_headers(${target} REUSE_FROM ${pch})
    endif()
  endforeach()
endfunction()
