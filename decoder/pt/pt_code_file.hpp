#pragma once
/// @file
/// Where libipt finds code.

#include <cstdint>
#include <string>

#include "arch/base/address.hpp"

namespace backtrail::decoder {

/// A file's bytes in the program's memory. libipt remembers blocks of files, and so follows them
/// some four times as fast as code that it is given instruction by instruction.
struct PtCodeFile {
  std::string path;
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  TraceeAddr address;
};

}  // namespace backtrail::decoder
