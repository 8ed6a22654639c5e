// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A file in which libipt finds code.

#include <cstdint>
#include <string>

#include "arch/base/address.hpp"

namespace backtrail::decoder {

/// A file mapped into the program's memory. libipt caches blocks of files, so it follows them about
/// four times as fast as code that it reads through a callback.
struct PtCodeFile {
  std::string path;
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  TraceeAddr address;
};

}  // namespace backtrail::decoder
