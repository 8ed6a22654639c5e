# SPDX-License-Identifier: Apache-2.0
# Script of the target `portable`; BacktrailPortable.cmake sets its variables.
file(REMOVE_RECURSE "${FOLDER}")
set(inside "${FOLDER}/lib/backtrail")

# bin/backtrail-gdbserver is a link to the same launcher.
file(INSTALL "${LAUNCHER}" DESTINATION "${FOLDER}/bin" RENAME backtrail USE_SOURCE_PERMISSIONS)
file(CREATE_LINK backtrail "${FOLDER}/bin/backtrail-gdbserver" SYMBOLIC)
file(INSTALL "${PROGRAM}" DESTINATION "${inside}" USE_SOURCE_PERMISSIONS)
# The build id depends on the names of folders in the debug information, which is removed.
execute_process(COMMAND "${STRIP}" --remove-section=.note.gnu.build-id "${inside}/backtrail"
                        "${FOLDER}/bin/backtrail"
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

include("${CMAKE_CURRENT_LIST_DIR}/CopyLicences.cmake")
copy_licences("${FOLDER}/share/doc/backtrail" ${found} ${LINKED_IN})
file(INSTALL "${SOURCE}/LICENSE" "${SOURCE}/NOTICE" DESTINATION "${FOLDER}/share/doc/backtrail")

# The same bytes from the same files, whenever and by whomever: names are sorted, times are the
# commit's, owners root's.
cmake_path(GET FOLDER PARENT_PATH parent)
cmake_path(GET FOLDER FILENAME name)
string(REGEX REPLACE "[.]gz$" "" tar "${ARCHIVE}")
execute_process(COMMAND tar --create --file "${tar}" --format=gnu --sort=name "--mtime=@${EPOCH}" --mode=u=rwX,go=rX
                        --owner=0 --group=0 --numeric-owner "${name}"
                WORKING_DIRECTORY "${parent}" COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND gzip --no-name --best --force "${tar}" COMMAND_ERROR_IS_FATAL ANY)

# For `sha256sum --check`.
cmake_path(GET ARCHIVE FILENAME archive_name)
file(SHA256 "${ARCHIVE}" sum)
file(WRITE "${ARCHIVE}.sha256" "${sum}  ${archive_name}\n")
