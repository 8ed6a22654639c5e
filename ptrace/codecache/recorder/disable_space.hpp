// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The callback by which parts of the recorder disable translated code.

#include <functional>
#include <string>

namespace backtrail::tracee::cache {

/// Disables translated code for all threads of the process, which must have a space. The first
/// reason given stays.
using DisableSpace = std::function<void(const std::string& why)>;

}  // namespace backtrail::tracee::cache
