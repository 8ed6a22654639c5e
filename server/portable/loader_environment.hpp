#pragma once
/// @file
/// The portable folder has its own dynamic linker. The user's settings for theirs (ld.so(8)) are
/// for the programs that backtrail runs, and could keep this one from starting: a library of
/// LD_PRELOAD may need a younger C library.

namespace backtrail::server {

/// Put in front of the names of the variables that are to wait.
inline constexpr const char* kWaitingPrefix = "BACKTRAIL_WAITING_";

/// Gives variables that the launcher let wait their names back, in the same order. What is in the
/// environment otherwise stays as it is.
/// @param environment as environ(7): ends with a null pointer; pointers in it are changed.
void restore_loader_environment(char** environment);

/// Names this process after its command where ps(1) would show the dynamic linker's name.
void restore_process_name(const char* command);

}  // namespace backtrail::server
