// A library that calls another library's function many times, like a plug-in's host.

long call_often(long (*function)(long), long times) {
  long result = 0;
  for (long i = 0; i < times; ++i) result = function(i) - i;
  return result;
}

// SPDX-License-Identifier: Apache-2.0
