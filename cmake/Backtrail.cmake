# SPDX-License-Identifier: Apache-2.0
# CMake module: tests that leave a crash file when they crash.
#
#   find_package(Backtrail REQUIRED)     # or: include(Backtrail), with its folder in CMAKE_MODULE_PATH
#   backtrail_record_tests(my_tests more_tests OUTPUT "${CMAKE_BINARY_DIR}/crashes")
#
# Runs these targets under `backtrail record` wherever CTest runs them by name:
# add_test(NAME ... COMMAND my_tests ...) and gtest_discover_tests(my_tests). It does not wrap
# add_test(name my_tests), commands with $<TARGET_FILE:my_tests>, or scripts: put
# ${BACKTRAIL_RECORD} before the command there.
#
#   OUTPUT   folder of the crash files, below the current binary folder where it is relative; default
#            ${CMAKE_BINARY_DIR}/backtrail. `backtrail record` makes it.
#   OPTIONS  further words for `backtrail record`, for example --on signal,sanitizer,timeout=60
#
# Before CMake 3.29 it sets the targets' CROSSCOMPILING_EMULATOR, which also wraps the program in
# custom commands of a cross build; later it sets TEST_LAUNCHER. A target that already has one is an
# error: a program under another CPU's emulator cannot be recorded.
#
# Variables: BACKTRAIL_EXECUTABLE (cache) is the program. BACKTRAIL_RECORD holds the words to put
# before a command: those of the last backtrail_record_tests() of this folder or of a parent folder,
# with its OUTPUT and OPTIONS; before the first call, those of a call without either.
#
# Each folder has its own guard, because variables do not reach sibling folders.
include_guard(DIRECTORY)

find_program(BACKTRAIL_EXECUTABLE backtrail HINTS "${CMAKE_CURRENT_LIST_DIR}/../../../bin"
             DOC "The backtrail program")

# Sets VARIABLE to the words to put before a command whose crash files go to FOLDER.
function(_backtrail_record_words variable folder)
  string(REPLACE "%" "%%" folder "${folder}")
  set(${variable} "${BACKTRAIL_EXECUTABLE}" record -o "${folder}/%e.%p.core" ${ARGN} -- PARENT_SCOPE)
endfunction()

_backtrail_record_words(BACKTRAIL_RECORD "${CMAKE_BINARY_DIR}/backtrail")

function(backtrail_record_tests)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "OUTPUT" "OPTIONS")
  if(NOT BACKTRAIL_EXECUTABLE)
    message(FATAL_ERROR "backtrail_record_tests: set BACKTRAIL_EXECUTABLE to the backtrail program")
  endif()
  if(NOT arg_OUTPUT)
    set(arg_OUTPUT "${CMAKE_BINARY_DIR}/backtrail")
  endif()
  string(FIND "${arg_OUTPUT}" "$<" expression)
  if(NOT expression EQUAL 0)
    get_filename_component(arg_OUTPUT "${arg_OUTPUT}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_BINARY_DIR}")
  endif()
  _backtrail_record_words(words "${arg_OUTPUT}" ${arg_OPTIONS})
  if(CMAKE_VERSION VERSION_GREATER_EQUAL 3.29)
    set(property TEST_LAUNCHER)
  else()
    set(property CROSSCOMPILING_EMULATOR)
  endif()
  foreach(target IN LISTS arg_UNPARSED_ARGUMENTS)
    get_target_property(emulator ${target} CROSSCOMPILING_EMULATOR)
    get_target_property(launcher ${target} ${property})
    if(emulator OR launcher)
      message(FATAL_ERROR "backtrail_record_tests: ${target} runs under something else already")
    endif()
    set_property(TARGET ${target} PROPERTY ${property} ${words})
  endforeach()
  set(BACKTRAIL_RECORD ${words} PARENT_SCOPE)
endfunction()
