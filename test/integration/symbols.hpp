// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Addresses of symbols in programs that are not position independent.

#include <cstdio>
#include <string>

#include <gtest/gtest.h>

#include "arch/base/address.hpp"

namespace backtrail::tracee {

/// Reads the symbol with nm(1). Returns 0 and fails the test if there is none.
[[nodiscard]] inline TraceeAddr symbol_of(const std::string& program, const std::string& symbol) {
  const std::string command = "nm '" + std::string{BT_INFERIOR_DIR} + "/" + program + "'";
  FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return TraceeAddr{};
  unsigned long long address = 0;
  unsigned long long found = 0;
  char kind = 0;
  char name[256];
  while (std::fscanf(pipe, "%llx %c %255s\n", &address, &kind, name) == 3 ||
         std::fscanf(pipe, " %c %255s\n", &kind, name) == 2) {
    if (symbol == name) found = address;
  }
  ::pclose(pipe);
  EXPECT_NE(found, 0U) << "no symbol " << symbol << " in " << program;
  return TraceeAddr{found};
}

}  // namespace backtrail::tracee
