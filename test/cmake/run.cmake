# SPDX-License-Identifier: Apache-2.0
# cmake -DBUILD=our build folder -DWORK=a folder to use -P run.cmake
# Installs Backtrail and uses its CMake module as a project of somebody's would.
function(run)
  cmake_parse_arguments(PARSE_ARGV 0 arg "MAY_FAIL" "OUTPUT" "COMMAND")
  execute_process(COMMAND ${arg_COMMAND} RESULT_VARIABLE status OUTPUT_VARIABLE text
                  ERROR_VARIABLE text)
  if(NOT status EQUAL 0 AND NOT arg_MAY_FAIL)
    list(JOIN arg_COMMAND " " command)
    message(FATAL_ERROR "${command}: ${status}\n${text}")
  endif()
  set(${arg_OUTPUT} "${text}" PARENT_SCOPE)
endfunction()

function(expect pattern text)
  if(NOT text MATCHES "${pattern}")
    message(FATAL_ERROR "no '${pattern}' in:\n${text}")
  endif()
endfunction()

file(REMOVE_RECURSE "${WORK}")
run(COMMAND "${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${WORK}/installed")
run(COMMAND "${CMAKE_COMMAND}" -G Ninja -S "${CMAKE_CURRENT_LIST_DIR}" -B "${WORK}/build"
    "-DCMAKE_PREFIX_PATH=${WORK}/installed")
run(COMMAND "${CMAKE_COMMAND}" --build "${WORK}/build")
run(MAY_FAIL OUTPUT text COMMAND "${CMAKE_CTEST_COMMAND}" --test-dir "${WORK}/build" -V)
expect("passes \\.+ +Passed" "${text}")
expect("by_hand \\.+ +Passed" "${text}")
expect("SIGABRT in some_tests" "${text}")
# Died of the signal, not with a status that stands for it.
expect("crashes \\.+\\*\\*\\*Exception|crashes .*Subprocess aborted" "${text}")
# Each with a name of its own; wherever the folder is, nobody had to make it.
foreach(case "100%pure/crashes:2" "backtrail:3" "relative:1")
  string(REGEX MATCH "^(.*):(.*)$" _ "${case}")
  file(GLOB left RELATIVE "${WORK}/build/${CMAKE_MATCH_1}" "${WORK}/build/${CMAKE_MATCH_1}/*")
  list(LENGTH left count)
  if(NOT count EQUAL CMAKE_MATCH_2)
    message(FATAL_ERROR "${case}: ${left} in:\n${text}")
  endif()
  foreach(file IN LISTS left)
    expect("^(some|more)_tests\\.[0-9]+\\.core$" "${file}")
  endforeach()
endforeach()
file(REMOVE_RECURSE "${WORK}")
