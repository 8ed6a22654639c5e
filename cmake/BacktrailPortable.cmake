# SPDX-License-Identifier: Apache-2.0
# The target `portable`: a folder and its archive, which run on Linux distributions with another C
# library or without the libraries used here. Recorded programs use their own libraries.
if(BT_SANITIZE)
  return()
endif()
execute_process(COMMAND "${CMAKE_CXX_COMPILER}" -print-file-name=libc.a
                OUTPUT_VARIABLE BT_LIBC_ARCHIVE OUTPUT_STRIP_TRAILING_WHITESPACE)
if(NOT IS_ABSOLUTE "${BT_LIBC_ARCHIVE}")
  message(STATUS "no target `portable`: there is no libc.a")
  return()
endif()
set(BT_LINKER ld-linux-x86-64.so.2)
set(BT_PORTABLE_NAME "backtrail-${PROJECT_VERSION}-x86_64")
add_executable(backtrail_launcher "${PROJECT_SOURCE_DIR}/server/portable/launcher.cpp")
target_include_directories(backtrail_launcher PRIVATE "${PROJECT_SOURCE_DIR}")
target_link_libraries(backtrail_launcher PRIVATE bt_warnings)
target_compile_definitions(backtrail_launcher PRIVATE BT_LINKER="${BT_LINKER}")
target_link_options(backtrail_launcher PRIVATE -static LINKER:--gc-sections)

set(BT_PORTABLE_FOLDER "${PROJECT_BINARY_DIR}/portable/${BT_PORTABLE_NAME}")
set(BT_PORTABLE_ARCHIVE "${PROJECT_BINARY_DIR}/${BT_PORTABLE_NAME}.tar.gz")
include(BacktrailLinkedIn)
add_custom_command(
  OUTPUT "${BT_PORTABLE_ARCHIVE}" "${BT_PORTABLE_ARCHIVE}.sha256"
  COMMAND
    "${CMAKE_COMMAND}" "-DBUILD=${PROJECT_BINARY_DIR}" "-DPROGRAM=$<TARGET_FILE:backtrail>"
    "-DLAUNCHER=$<TARGET_FILE:backtrail_launcher>" "-DLINKER=${BT_LINKER}"
    "-DLIBRARIES=${ZYDIS_LIBRARY};${LIBIPT_LIBRARY}" "-DLINKED_IN=${BT_LINKED_IN}" "-DSOURCE=${PROJECT_SOURCE_DIR}"
    "-DEPOCH=${BT_EPOCH}"
    "-DSTRIP=${CMAKE_STRIP}" "-DOBJDUMP=${CMAKE_OBJDUMP}" "-DFOLDER=${BT_PORTABLE_FOLDER}" "-DARCHIVE=${BT_PORTABLE_ARCHIVE}" -P
    "${PROJECT_SOURCE_DIR}/cmake/MakePortable.cmake"
  DEPENDS backtrail backtrail_launcher "${PROJECT_SOURCE_DIR}/cmake/MakePortable.cmake"
          "${PROJECT_SOURCE_DIR}/cmake/CopyLicences.cmake" ${BT_DATA_FILES}
  COMMENT "Making ${BT_PORTABLE_NAME}.tar.gz"
  VERBATIM)
add_custom_target(portable DEPENDS "${BT_PORTABLE_ARCHIVE}")
