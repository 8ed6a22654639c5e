# SPDX-License-Identifier: Apache-2.0
# Every header compiles alone: generated translation units include each of them twice. A unit may
# have several headers (header_chains.py).
#
# Most of that time goes into a few headers that most others include. Headers that include one of
# these directly may use it precompiled. That cannot hide a missing include, because a header's
# includes come before its own text.
set(BT_WIDELY_INCLUDED <functional> <memory> <string> arch/base/address.hpp arch/base/result.hpp
    ptrace/engine/thread_runner.hpp)

set(bt_headers "")
foreach(folder arch decoder ptrace server test/support)
  file(GLOB_RECURSE found CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}"
       "${PROJECT_SOURCE_DIR}/${folder}/*.hpp")
  list(APPEND bt_headers ${found})
endforeach()
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${bt_headers})

find_package(Python3 REQUIRED COMPONENTS Interpreter)
list(JOIN bt_headers "\n" bt_lines)
set(bt_input "${PROJECT_BINARY_DIR}/headers.txt")
file(WRITE "${bt_input}" "${bt_lines}\n")
execute_process(COMMAND "${Python3_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/cmake/header_chains.py"
                        ${BT_WIDELY_INCLUDED}
                WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}"
                INPUT_FILE "${bt_input}" OUTPUT_VARIABLE bt_texts COMMAND_ERROR_IS_FATAL ANY)

set(bt_check_targets "")
string(REGEX MATCHALL "[^\n]+" bt_texts "${bt_texts}")
foreach(text ${bt_texts})
  string(REPLACE "\t" ";" headers "${text}")
  list(POP_FRONT headers precompiled)
  list(GET headers -1 last)
  string(REPLACE "/" "__" unit "${last}.cpp")
  set(unit "${PROJECT_BINARY_DIR}/header_checks/${unit}")
  set(lines "")
  foreach(header ${headers} ${headers})
    string(APPEND lines "#include \"${header}\"\n")
  endforeach()
  file(CONFIGURE OUTPUT "${unit}" CONTENT "${lines}" @ONLY)
  if(NOT BT_PRECOMPILED)
    set(precompiled "")
  endif()
  string(MAKE_C_IDENTIFIER "bt_header_checks_${precompiled}" checks)
  list(APPEND bt_check_targets ${checks})
  list(APPEND ${checks}_units "${unit}")
  string(REPLACE "+" ";" ${checks}_precompiled "${precompiled}")
endforeach()

add_custom_target(bt_header_checks ALL)
list(REMOVE_DUPLICATES bt_check_targets)
foreach(checks ${bt_check_targets})
  add_library(${checks} OBJECT ${${checks}_units})
  target_link_libraries(${checks} PRIVATE bt::server Boost::headers GTest::gtest GTest::gmock)
  target_compile_definitions(${checks} PRIVATE BOOST_ASIO_NO_DEPRECATED)
  # The checks are only compiled, so optimisation, debug information and sanitizers would be wasted.
  target_compile_options(${checks} PRIVATE -O0 -g0 -fno-sanitize=all)
  target_precompile_headers(${checks} PRIVATE ${${checks}_precompiled})
  add_dependencies(bt_header_checks ${checks})
endforeach()
