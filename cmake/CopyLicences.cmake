# SPDX-License-Identifier: Apache-2.0
# copy_licences(FOLDER FILES...): copies the copyright texts of the Debian packages that the files
# belong to into FOLDER, each named after its package. Does nothing on other systems.
function(copy_licences folder)
  find_program(DPKG_QUERY dpkg-query)
  if(NOT DPKG_QUERY)
    return()
  endif()
  foreach(file IN LISTS ARGN)
    # Matches the end of the path only: a package may list a file of /usr/lib under /lib.
    string(REGEX MATCH "[^/]*/[^/]*$" tail "${file}")
    execute_process(COMMAND "${DPKG_QUERY}" -S "*/${tail}" OUTPUT_VARIABLE owner ERROR_QUIET)
    if(NOT owner MATCHES "^([^:,]+)[:,]")
      continue()
    endif()
    set(package "${CMAKE_MATCH_1}")
    if(EXISTS "/usr/share/doc/${package}/copyright")
      file(REAL_PATH "/usr/share/doc/${package}/copyright" copyright)
      file(INSTALL "${copyright}" DESTINATION "${folder}" RENAME "${package}")
    endif()
  endforeach()
endfunction()
