// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Unpacks the result of parsing a command line.

#include <variant>

#include <gtest/gtest.h>

#include "server/cli/command_line.hpp"

namespace backtrail::server {

/// Returns the options; fails the test if the command was refused.
inline ServeOptions accepted(const Command& command) {
  if (const auto* exit = std::get_if<PrintAndExit>(&command)) {
    ADD_FAILURE() << "refused: " << exit->text;
    return {};
  }
  return std::get<ServeOptions>(command);
}

/// Returns the refusal; fails the test if the command was accepted.
inline PrintAndExit refusal(const Command& command) {
  const auto* exit = std::get_if<PrintAndExit>(&command);
  if (exit == nullptr) {
    ADD_FAILURE() << "accepted";
    return {};
  }
  return *exit;
}

}  // namespace backtrail::server
