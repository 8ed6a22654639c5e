# SPDX-License-Identifier: Apache-2.0
# The libraries' targets. Each shared library costs time at every start, even if only some commands
# use it: static archives are linked in where the distribution's can be (BacktrailArchives.cmake).
include(BacktrailPackages)
include(BacktrailArchives)

# The shared Capstone has a megabyte of pointers that the dynamic linker relocates at every start.
# In a program at a fixed address there is nothing to relocate.
bt_find_archives(capstone LIBRARIES capstone CHECK capstone.c OPTIONS -no-pie
                 INCLUDE ${capstone_INCLUDE_DIRS})
if(BT_ARCHIVES_capstone)
  add_library(bt_capstone INTERFACE)
  target_include_directories(bt_capstone SYSTEM INTERFACE ${capstone_INCLUDE_DIRS})
  target_link_libraries(bt_capstone INTERFACE ${BT_ARCHIVES_capstone})
  target_link_options(bt_capstone INTERFACE -no-pie)
else()
  add_library(bt_capstone ALIAS PkgConfig::capstone)
endif()

bt_find_archives(zstd LIBRARIES zstd CHECK zstd.c INCLUDE ${libzstd_INCLUDE_DIRS})
bt_find_archives(zlib LIBRARIES z CHECK zlib.c INCLUDE ${zlib_INCLUDE_DIRS})
foreach(name zstd zlib)
  if(BT_ARCHIVES_${name})
    add_library(bt_${name} INTERFACE)
    target_link_libraries(bt_${name} INTERFACE ${BT_ARCHIVES_${name}})
  endif()
endforeach()
if(NOT TARGET bt_zstd)
  add_library(bt_zstd ALIAS PkgConfig::libzstd)
endif()
if(NOT TARGET bt_zlib)
  add_library(bt_zlib ALIAS PkgConfig::zlib)
endif()

add_library(bt_elfutils INTERFACE)
bt_find_archives(elfutils LIBRARIES dw elf zstd z lzma bz2 CHECK elfutils.c
                 INCLUDE ${libdw_INCLUDE_DIRS} ${zlib_INCLUDE_DIRS})
if(BT_ARCHIVES_elfutils)
  target_link_libraries(bt_elfutils INTERFACE ${BT_ARCHIVES_elfutils})
else()
  target_link_libraries(bt_elfutils INTERFACE PkgConfig::libdw PkgConfig::libelf)
endif()

# Only libarchive's tar format is needed; its other formats bring a dozen libraries, which the linker
# removes in the end.
bt_find_archives(libarchive LIBRARIES archive acl attr zstd z lzma bz2 CHECK libarchive.c
                 OPTIONS LINKER:--gc-sections INCLUDE ${libarchive_INCLUDE_DIRS} SANITIZED)
if(BT_ARCHIVES_libarchive)
  add_library(bt_libarchive INTERFACE)
  target_include_directories(bt_libarchive SYSTEM INTERFACE ${libarchive_INCLUDE_DIRS})
  target_link_libraries(bt_libarchive INTERFACE ${BT_ARCHIVES_libarchive})
  target_link_options(bt_libarchive INTERFACE LINKER:--gc-sections)
else()
  add_library(bt_libarchive ALIAS PkgConfig::libarchive)
endif()

# Commands that call these load them at run time (arch/base/lazy_library.hpp).
function(bt_soname variable file)
  execute_process(COMMAND "${CMAKE_OBJDUMP}" -p "${file}" OUTPUT_VARIABLE headers)
  if(NOT headers MATCHES "SONAME +([^ \n]+)")
    message(FATAL_ERROR "${file} has no SONAME")
  endif()
  set(${variable} "${CMAKE_MATCH_1}" PARENT_SCOPE)
endfunction()
add_library(libipt::libipt UNKNOWN IMPORTED)
set_target_properties(libipt::libipt PROPERTIES IMPORTED_LOCATION "${LIBIPT_LIBRARY}"
                                                INTERFACE_INCLUDE_DIRECTORIES "${LIBIPT_INCLUDE_DIR}")
find_library(ZYDIS_LIBRARY Zydis REQUIRED)
bt_soname(BT_ZYDIS "${ZYDIS_LIBRARY}")
bt_soname(BT_LIBIPT "${LIBIPT_LIBRARY}")

# These are compiled into their users (arch/base/compiled_*.cpp), as their headers allow.
if(NOT BT_SANITIZE)
  set(BT_COMPILED_LIBRARIES base/compiled_fmt.cpp base/compiled_spdlog.cpp)
endif()
foreach(library fmt spdlog)
  add_library(bt_${library} INTERFACE)
  if(BT_COMPILED_LIBRARIES)
    target_compile_definitions(
      bt_${library}
      INTERFACE $<TARGET_PROPERTY:${library}::${library},INTERFACE_COMPILE_DEFINITIONS>)
    target_include_directories(
      bt_${library} SYSTEM
      INTERFACE $<TARGET_PROPERTY:${library}::${library},INTERFACE_INCLUDE_DIRECTORIES>)
  else()
    target_link_libraries(bt_${library} INTERFACE ${library}::${library})
  endif()
endforeach()
target_link_libraries(bt_spdlog INTERFACE Threads::Threads)
