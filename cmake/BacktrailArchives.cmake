# SPDX-License-Identifier: Apache-2.0
# Static archives of libraries, where they link.

# bt_find_archives(NAME LIBRARIES ... CHECK FILE [INCLUDE FOLDERS...] [OPTIONS ...] [SANITIZED]):
# sets BT_ARCHIVES_NAME to the archives of LIBRARIES if all are there and cmake/checks/FILE, which
# uses what the program uses of them, links with nothing else; to nothing otherwise: an archive may
# lack parts that its shared library has (libdw.a of elfutils 0.192 lacks libeu.a) or need libraries
# that are not there. Builds with sanitizers use shared libraries unless SANITIZED is given.
function(bt_find_archives name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "SANITIZED" "CHECK" "LIBRARIES;INCLUDE;OPTIONS")
  set(BT_ARCHIVES_${name} "" PARENT_SCOPE)
  if(BT_SANITIZE AND NOT arg_SANITIZED)
    return()
  endif()
  set(archives)
  foreach(library IN LISTS arg_LIBRARIES)
    find_library(BT_ARCHIVE_${library} lib${library}.a)
    if(NOT BT_ARCHIVE_${library})
      message(STATUS "${name}: the shared library (there is no lib${library}.a)")
      return()
    endif()
    list(APPEND archives "${BT_ARCHIVE_${library}}")
  endforeach()
  if(NOT BT_LINKS_${name} STREQUAL "${archives}")
    # A program like the real one: other archives than LIBRARIES would hide what is missing.
    try_compile(
      links "${PROJECT_BINARY_DIR}/checks/${name}" "${PROJECT_SOURCE_DIR}/cmake/checks/${arg_CHECK}"
      CMAKE_FLAGS "-DINCLUDE_DIRECTORIES=${arg_INCLUDE}"
      LINK_OPTIONS ${arg_OPTIONS}
      LINK_LIBRARIES ${archives} Threads::Threads
      OUTPUT_VARIABLE output)
    if(NOT links)
      string(REGEX MATCH "undefined reference to [^\n]*|[^\n]*error[^\n]*" why "${output}")
      message(STATUS "${name}: the shared library (the static one does not link: ${why})")
      return()
    endif()
    set(BT_LINKS_${name} "${archives}" CACHE INTERNAL "These archives link")
  endif()
  set(BT_ARCHIVES_${name} ${archives} PARENT_SCOPE)
endfunction()
