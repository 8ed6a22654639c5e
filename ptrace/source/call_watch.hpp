// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Interface to a listener that sees every system call of one recorded thread.

namespace backtrail::tracee {

class Thread;

class CallWatch {
 public:
  CallWatch() = default;
  CallWatch(const CallWatch&) = delete;
  CallWatch& operator=(const CallWatch&) = delete;
  virtual ~CallWatch() = default;
  /// Call before the stopped thread executes a system call, of any kind.
  virtual void begin(Thread& thread) = 0;
  /// Call at the thread's next stop.
  virtual void end(Thread& thread) = 0;
};

}  // namespace backtrail::tracee
