// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A core file and its mapped bytes.

#include "decoder/corefile/core_file.hpp"
#include "ptrace/core/mapped_file.hpp"

namespace backtrail::server {

struct OpenCore {
  tracee::MappedFile file;
  decoder::CoreFile core;
};

}  // namespace backtrail::server
