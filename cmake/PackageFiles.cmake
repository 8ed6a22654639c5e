# SPDX-License-Identifier: Apache-2.0
# Runs before cpack makes a package of CPACK_TEMPORARY_INSTALL_DIRECTORY: adds the documents that a
# package has, and compresses them.
include("${CMAKE_CURRENT_LIST_DIR}/CopyLicences.cmake")
# cpack sets it for installations; file(INSTALL) would prepend it once more.
unset(ENV{DESTDIR})
set(share "${CPACK_TEMPORARY_INSTALL_DIRECTORY}${CPACK_PACKAGING_INSTALL_PREFIX}/${CPACK_BT_DATA}")
set(documents "${share}/doc/backtrail")

# bt_compress(FILE...): the same bytes from the same file.
function(bt_compress)
  execute_process(COMMAND gzip --no-name --best --force ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(GLOB pages "${share}/man/man*/*.[157]")
bt_compress(${pages})
file(INSTALL "${CPACK_BT_SOURCE}/NOTICE" DESTINATION "${documents}")
copy_licences("${documents}/licences" ${CPACK_BT_LINKED_IN})

if(CPACK_GENERATOR STREQUAL "DEB")
  # Debian's zsh looks for packages' completions in a folder of its own.
  file(RENAME "${share}/zsh/site-functions" "${share}/zsh/vendor-completions")
  file(INSTALL "${CPACK_BT_SOURCE}/cmake/package/copyright" DESTINATION "${documents}")
  file(INSTALL "${CPACK_BT_SOURCE}/CHANGELOG.md" DESTINATION "${documents}" RENAME changelog)
  execute_process(COMMAND date --utc --rfc-email "--date=@${CPACK_BT_EPOCH}"
                  OUTPUT_VARIABLE date OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  file(WRITE "${documents}/changelog.Debian"
       "backtrail (${CPACK_PACKAGE_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}) unstable; urgency=medium\n\n"
       "  * Packaged from its sources by cpack; changelog.gz has the changes.\n\n"
       " -- ${CPACK_PACKAGE_CONTACT}  ${date}\n")
  bt_compress("${documents}/changelog" "${documents}/changelog.Debian")
  file(INSTALL "${CPACK_BT_SOURCE}/cmake/package/lintian-overrides"
       DESTINATION "${share}/lintian/overrides" RENAME backtrail)
else()
  file(INSTALL "${CPACK_BT_SOURCE}/LICENSE" "${CPACK_BT_SOURCE}/CHANGELOG.md" DESTINATION "${documents}")
endif()
