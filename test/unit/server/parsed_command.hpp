#pragma once
/// @file
/// What the words of a command line were taken for.

#include <variant>

#include <gtest/gtest.h>

#include "server/cli/command_line.hpp"

namespace backtrail::server {

/// Fails the test when the command was refused.
inline ServeOptions accepted(const Command& command) {
  if (const auto* exit = std::get_if<PrintAndExit>(&command)) {
    ADD_FAILURE() << "refused: " << exit->text;
    return {};
  }
  return std::get<ServeOptions>(command);
}

/// Fails the test when the command was not refused.
inline PrintAndExit refusal(const Command& command) {
  const auto* exit = std::get_if<PrintAndExit>(&command);
  if (exit == nullptr) {
    ADD_FAILURE() << "accepted";
    return {};
  }
  return *exit;
}

}  // namespace backtrail::server
