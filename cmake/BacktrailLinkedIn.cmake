# SPDX-License-Identifier: Apache-2.0
# For archives and packages: the files of libraries that are linked or compiled in, whose licences
# must accompany the program, and the time of the sources.
set(BT_LINKED_IN ${BT_ARCHIVES_elfutils} ${BT_ARCHIVES_libarchive} ${BT_ARCHIVES_capstone}
                 "${LIBIBERTY_LIBRARY}")
# Boost's licence does not ask for its text beside programs.
foreach(header fmt/format.h spdlog/spdlog.h tl/expected.hpp CLI/CLI.hpp pugixml.hpp)
  string(MAKE_C_IDENTIFIER "BT_HEADER_${header}" variable)
  find_path(${variable} ${header})
  mark_as_advanced(${variable})
  if(${variable})
    list(APPEND BT_LINKED_IN "${${variable}}/${header}")
  endif()
endforeach()

# SOURCE_DATE_EPOCH, else the time of the commit: files of packages have no other time.
set(BT_EPOCH "$ENV{SOURCE_DATE_EPOCH}")
if(NOT BT_EPOCH)
  execute_process(COMMAND git -C "${PROJECT_SOURCE_DIR}" log -1 --format=%ct
                  OUTPUT_VARIABLE BT_EPOCH OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
if(NOT BT_EPOCH MATCHES "^[0-9]+$")
  set(BT_EPOCH 1700000000)
endif()
