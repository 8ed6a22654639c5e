# SPDX-License-Identifier: Apache-2.0
# Script of the target `portable`; BacktrailPortable.cmake sets its variables.
file(REMOVE_RECURSE "${FOLDER}")
set(inside "${FOLDER}/lib/backtrail")

# bin/backtrail-gdbserver is a link to the same launcher.
file(INSTALL "${LAUNCHER}" DESTINATION "${FOLDER}/bin" RENAME backtrail USE_SOURCE_PERMISSIONS)
file(CREATE_LINK backtrail "${FOLDER}/bin/backtrail-gdbserver" SYMBOLIC)
file(INSTALL "${PROGRAM}" DESTINATION "${inside}" USE_SOURCE_PERMISSIONS)
execute_process(COMMAND "${STRIP}" "${inside}/backtrail" "${FOLDER}/bin/backtrail"
                COMMAND_ERROR_IS_FATAL ANY)

# Installs the libraries under the names that programs load them by.
set(CMAKE_OBJDUMP "${OBJDUMP}")
file(GET_RUNTIME_DEPENDENCIES EXECUTABLES "${PROGRAM}" LIBRARIES ${LIBRARIES}
     RESOLVED_DEPENDENCIES_VAR dependencies)
set(found)
foreach(library IN LISTS LIBRARIES dependencies)
  execute_process(COMMAND "${OBJDUMP}" -p "${library}" OUTPUT_VARIABLE headers
                  COMMAND_ERROR_IS_FATAL ANY)
  if(NOT headers MATCHES "SONAME +([^ \n]+)")
    message(FATAL_ERROR "${library} has no SONAME")
  endif()
  set(name "${CMAKE_MATCH_1}")
  file(REAL_PATH "${library}" file)
  file(INSTALL "${file}" DESTINATION "${inside}" RENAME "${name}" USE_SOURCE_PERMISSIONS)
  list(APPEND found "${file}")
endforeach()
if(NOT EXISTS "${inside}/${LINKER}")
  message(FATAL_ERROR "${PROGRAM} does not need ${LINKER}: the launcher would not find it")
endif()

execute_process(COMMAND "${CMAKE_COMMAND}" --install "${BUILD}" --component data --prefix "${FOLDER}"
                OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)

find_program(DPKG_QUERY dpkg-query)
if(DPKG_QUERY)
  foreach(file IN LISTS found LINKED_IN)
    # Matches the end of the path only: a package may list a file of /usr/lib under /lib.
    string(REGEX MATCH "[^/]*/[^/]*$" tail "${file}")
    execute_process(COMMAND "${DPKG_QUERY}" -S "*/${tail}" OUTPUT_VARIABLE owner ERROR_QUIET)
    if(NOT owner MATCHES "^([^:]+):")
      continue()
    endif()
    set(package "${CMAKE_MATCH_1}")
    if(EXISTS "/usr/share/doc/${package}/copyright")
      file(REAL_PATH "/usr/share/doc/${package}/copyright" copyright)
      file(INSTALL "${copyright}" DESTINATION "${FOLDER}/share/doc/backtrail" RENAME "${package}")
    endif()
  endforeach()
endif()

cmake_path(GET FOLDER PARENT_PATH parent)
cmake_path(GET FOLDER FILENAME name)
execute_process(COMMAND "${CMAKE_COMMAND}" -E tar czf "${ARCHIVE}" "${name}"
                WORKING_DIRECTORY "${parent}" COMMAND_ERROR_IS_FATAL ANY)
