// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Runs programs, natively and under `backtrail record`.

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <sys/wait.h>

#include "test/support/subprocess.hpp"

namespace backtrail::test {

using Words = std::vector<std::string>;

inline constexpr std::chrono::seconds kRecordPatience{120};

/// Returns the environment of programs. A sanitized recorder is twenty times slower; programs then
/// print no source lines in sanitizer reports, because that starts another program.
inline std::vector<std::string> record_environment() {
  std::vector<std::string> environment = test_environment();
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
  for (const char* sanitizer : {"ASAN", "LSAN", "TSAN", "UBSAN"}) {
    environment.push_back(std::string{sanitizer} + "_OPTIONS=symbolize=0");
  }
#endif
#endif
  return environment;
}

struct Ran {
  int status = -1;  ///< Exit status; 1000 + a signal; -1 if the program did not end.
  std::string output;
};

inline std::unique_ptr<Subprocess> start(Words words, const std::string& folder = {}) {
  return std::make_unique<Subprocess>(SpawnOptions{.arguments = std::move(words),
                                                   .environment = record_environment(),
                                                   .working_directory = folder});
}

inline Ran finish(Subprocess& process) {
  Ran ran;
  const auto raw = process.wait(deadline_in(kRecordPatience));
  if (raw) ran.status = WIFEXITED(*raw) ? WEXITSTATUS(*raw) : 1000 + WTERMSIG(*raw);
  process.output().drain();
  ran.output = process.output().text();
  return ran;
}

inline Words with(const Words& first, const Words& rest) {
  Words all = first;
  all.insert(all.end(), rest.begin(), rest.end());
  return all;
}

inline Ran run(const Words& words) {
  return finish(*start(words));
}

inline Ran record(const Words& words) {
  return run(with({BT_BACKTRAIL, "record"}, words));
}

inline Words shell(const std::string& script) {
  return {"/bin/sh", "-c", script};
}

}  // namespace backtrail::test
