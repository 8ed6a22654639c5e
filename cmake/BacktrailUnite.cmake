# SPDX-License-Identifier: Apache-2.0
# Compiles several files as one text: most of each file's compile time goes into library headers.

# bt_one_text(TARGET GROUP FILES...)
function(bt_one_text target group)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  set_source_files_properties(${ARGN} TARGET_DIRECTORY ${target} PROPERTIES UNITY_GROUP ${group})
  # g++ takes the included files for headers, and their unnamed namespaces would differ between
  # headers' users.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  # Collecting garbage takes g++ a tenth of its time for long texts, and frees a seventh of its
  # memory.
  target_compile_options(
    ${target} PRIVATE "$<$<CXX_COMPILER_ID:GNU>:SHELL:--param ggc-min-heapsize=600000>")
endfunction()

# bt_united_sources(FOLDER OUT): "TARGET<tab>FILE" lines for the targets that FOLDER itself defines.
function(bt_united_sources folder out)
  set(lines "")
  get_property(targets DIRECTORY "${folder}" PROPERTY BUILDSYSTEM_TARGETS)
  foreach(target ${targets})
    get_target_property(type ${target} TYPE)
    if(NOT type MATCHES "^(STATIC_LIBRARY|EXECUTABLE)$")
      continue()
    endif()
    get_target_property(sources ${target} SOURCES)
    list(FILTER sources INCLUDE REGEX "^[^$]*[.]cpp$")
    foreach(source ${sources})
      cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY "${folder}")
      if(EXISTS "${source}")
        string(APPEND lines "${target}\t${source}\n")
      endif()
    endforeach()
  endforeach()
  set(${out} "${lines}" PARENT_SCOPE)
endfunction()

# bt_unite(FOLDER...): joins the files of each target, several at a time, as far as their names
# allow.
function(bt_unite)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  set(lines "")
  foreach(folder ${ARGN})
    cmake_path(ABSOLUTE_PATH folder)
    bt_united_sources("${folder}" found)
    string(APPEND lines "${found}")
  endforeach()
  set(input "${CMAKE_CURRENT_BINARY_DIR}/united_sources.txt")
  file(WRITE "${input}" "${lines}")
  execute_process(COMMAND "${Python3_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/cmake/source_groups.py"
                          "${BT_UNITE_FILES}"
                  INPUT_FILE "${input}" OUTPUT_VARIABLE groups COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "[^\n]+" groups "${groups}")
  foreach(group ${groups})
    string(REPLACE "\t" ";" group "${group}")
    bt_one_text(${group})
  endforeach()
endfunction()
