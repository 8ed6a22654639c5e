# SPDX-License-Identifier: Apache-2.0
# `cpack -G DEB` or `cpack -G RPM` in the build folder makes a package for this system: its libraries
# are those that the program was built with.
include(BacktrailLinkedIn)
set(CPACK_PACKAGE_NAME backtrail)
set(CPACK_PACKAGE_VENDOR "The Backtrail authors")
set(BT_MAINTAINER "The Backtrail authors <backtrail@localhost>"
    CACHE STRING "Maintainer of packages: a name and an address")
set(CPACK_PACKAGE_CONTACT "${BT_MAINTAINER}")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "branch trace in gdb, everywhere")
set(CPACK_PACKAGE_DESCRIPTION
    "A gdbserver that always has a branch trace: an unmodified gdb steps backwards
in virtual machines, in containers and on every x86-64 CPU, without a kernel
setting and without recompilation. A recorder leaves crash files with the way
to the crash in them, for gdb, for reports and for continuous integration.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_MONOLITHIC_INSTALL ON)
set(CPACK_STRIP_FILES ON)
set(CPACK_GENERATOR TGZ)
set(CPACK_PRE_BUILD_SCRIPTS "${PROJECT_SOURCE_DIR}/cmake/PackageFiles.cmake")
# Variables with this prefix reach the script.
set(CPACK_BT_SOURCE "${PROJECT_SOURCE_DIR}")
set(CPACK_BT_EPOCH "${BT_EPOCH}")
set(CPACK_BT_LINKED_IN "${BT_LINKED_IN}")
set(CPACK_BT_DATA "${CMAKE_INSTALL_DATADIR}")

# Libraries that commands load when they need them are not found by dpkg-shlibdeps and rpm.
set(loaded)
find_program(DPKG_QUERY dpkg-query)
if(DPKG_QUERY)
  foreach(library "${ZYDIS_LIBRARY}" "${LIBIPT_LIBRARY}")
    file(REAL_PATH "${library}" file)
    cmake_path(GET file FILENAME file)
    execute_process(COMMAND "${DPKG_QUERY}" -S "*/${file}" OUTPUT_VARIABLE owner ERROR_QUIET)
    if(owner MATCHES "^([^:]+):")
      list(APPEND loaded "${CMAKE_MATCH_1}")
    endif()
  endforeach()
endif()
list(JOIN loaded ", " loaded)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "${loaded}")
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS gdb)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)

set(CPACK_RPM_PACKAGE_LICENSE "Apache-2.0")
set(CPACK_RPM_PACKAGE_GROUP "Development/Debuggers")
set(CPACK_RPM_FILE_NAME RPM-DEFAULT)
set(CPACK_RPM_PACKAGE_REQUIRES "${BT_ZYDIS}()(64bit), ${BT_LIBIPT}()(64bit)")
set(CPACK_RPM_EXCLUDE_FROM_AUTO_FILELIST_ADDITION
    /usr/share/man /usr/share/man/man1 /usr/share/man/man5 /usr/share/man/man7 /usr/share/zsh
    /usr/share/zsh/site-functions /usr/share/fish
    /usr/share/fish/vendor_completions.d /usr/share/bash-completion
    /usr/share/bash-completion/completions /usr/share/cmake /usr/share/doc)
include(CPack)
