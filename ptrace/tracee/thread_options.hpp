// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Events that the client wants of single threads.

namespace backtrail::tracee {

/// A new thread has the options of the thread that made it.
struct ThreadOptions {
  bool clones = false;  ///< kThreadCloned; the new thread waits for the client to resume it.
  bool exit = false;    ///< kThreadExited.

  bool operator==(const ThreadOptions&) const = default;
};

}  // namespace backtrail::tracee
