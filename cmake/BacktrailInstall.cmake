# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` puts beside the program: the component `data`, which the portable folder has
# as well.
foreach(page backtrail.1 backtrail-gdbserver.1 backtrail-record.1 backtrail-replay.1 backtrail-report.1
             backtrail-core.5 backtrail-bts.7)
  string(REGEX MATCH "[0-9]$" section "${page}")
  install(FILES docs/${page} DESTINATION "${CMAKE_INSTALL_MANDIR}/man${section}" COMPONENT data)
endforeach()
install(FILES cmake/Backtrail.cmake DESTINATION "${CMAKE_INSTALL_DATADIR}/backtrail/cmake"
        COMPONENT data)
install(FILES cmake/BacktrailConfig.cmake DESTINATION "${CMAKE_INSTALL_DATADIR}/cmake/Backtrail"
        COMPONENT data)

install(FILES server/gdb/backtrail-dap.py server/gdb/backtrail-gdb.py
        DESTINATION "${CMAKE_INSTALL_DATADIR}/backtrail" COMPONENT data)

# Debian's zsh looks for packages' completions in a folder of its own.
set(zsh zsh/site-functions)
if(EXISTS /etc/debian_version)
  set(zsh zsh/vendor-completions)
endif()
set(BT_ZSH_COMPLETIONS "${CMAKE_INSTALL_DATADIR}/${zsh}" CACHE STRING "Folder of zsh's completions")
set(completions server/completions)
install(FILES ${completions}/backtrail.bash RENAME backtrail COMPONENT data
        DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions")
install(FILES ${completions}/backtrail.zsh DESTINATION "${BT_ZSH_COMPLETIONS}" RENAME _backtrail
        COMPONENT data)
install(FILES ${completions}/backtrail.fish COMPONENT data
        DESTINATION "${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d")
