// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Runs backtrail with a persistent cache that is empty at first.

#include <algorithm>
#include <regex>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "record_fixture.hpp"
#include "test/support/temporary_folder.hpp"

namespace backtrail::test {

class OwnCache {
 public:
  [[nodiscard]] const std::string& folder() const { return folder_.path(); }
  /// Runs backtrail with these words.
  [[nodiscard]] Ran run(const Words& words) const {
    std::vector<std::string> environment = record_environment();
    std::erase_if(environment, [](const std::string& entry) {
      return entry.starts_with("BACKTRAIL_KEEP=") || entry.starts_with("XDG_CACHE_HOME=");
    });
    environment.push_back("XDG_CACHE_HOME=" + folder_.path());
    Subprocess process{{.arguments = with({BT_BACKTRAIL}, words),
                        .environment = std::move(environment),
                        .working_directory = {}}};
    return finish(process);
  }

 private:
  TemporaryFolder folder_;
};

/// Returns the number that `record --stats` prints after a name; -1 if there is none.
inline int printed(const Ran& recorded, const std::string& name) {
  std::smatch found;
  const bool told =
      std::regex_search(recorded.output, found, std::regex{"\nbacktrail: " + name + " +([0-9]+)"});
  EXPECT_TRUE(told) << name << " in\n" << recorded.output;
  return told ? std::stoi(found[1]) : -1;
}

}  // namespace backtrail::test
