# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` puts beside the program: the component `data`, which the portable folder has
# as well. BT_DATA_FILES lists the files.
set(BT_DATA_FILES)

# bt_install_data(FOLDER FILE [NAME]): installs FILE of the sources into FOLDER, as NAME.
function(bt_install_data folder file)
  cmake_path(GET file FILENAME name)
  if(ARGC GREATER 2)
    set(name "${ARGV2}")
  endif()
  install(FILES "${PROJECT_SOURCE_DIR}/${file}" DESTINATION "${folder}" RENAME "${name}" COMPONENT data)
  set(BT_DATA_FILES ${BT_DATA_FILES} "${PROJECT_SOURCE_DIR}/${file}" PARENT_SCOPE)
endfunction()

foreach(page backtrail.1 backtrail-gdbserver.1 backtrail-record.1 backtrail-replay.1 backtrail-report.1
             backtrail-core.5 backtrail-bts.7)
  string(REGEX MATCH "[0-9]$" section "${page}")
  bt_install_data("${CMAKE_INSTALL_MANDIR}/man${section}" docs/${page})
endforeach()
set(share "${CMAKE_INSTALL_DATADIR}")
bt_install_data("${share}/backtrail/cmake" cmake/Backtrail.cmake)
bt_install_data("${share}/cmake/Backtrail" cmake/BacktrailConfig.cmake)
bt_install_data("${share}/backtrail" server/gdb/backtrail-dap.py)
bt_install_data("${share}/backtrail" server/gdb/backtrail-gdb.py)

set(completions server/completions)
bt_install_data("${share}/bash-completion/completions" ${completions}/backtrail.bash backtrail)
bt_install_data("${share}/zsh/site-functions" ${completions}/backtrail.zsh _backtrail)
bt_install_data("${share}/fish/vendor_completions.d" ${completions}/backtrail.fish)
