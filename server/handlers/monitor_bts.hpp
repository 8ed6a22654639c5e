// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// `monitor bts`: operations on the branch trace store. docs/backtrail-bts.7 describes them.

#include <span>
#include <string>
#include <string_view>

#include "arch/base/result.hpp"
#include "decoder/bts/branch_store.hpp"

namespace backtrail::server::handlers {

/// Runs one command on a store. `words` starts with the operation.
/// @return The text to print. Error kInvalidArgument for malformed words, else the store's.
[[nodiscard]] Result<std::string> run_bts_command(decoder::BranchStore& store,
                                                  std::span<const std::string_view> words);
/// Removes the word that selects the process's store. Returns whether it was there.
[[nodiscard]] bool take_process(std::span<const std::string_view>& words);
/// Returns true if `words` configure a store with scheduling marks.
[[nodiscard]] bool wants_sched(std::span<const std::string_view> words);
/// Returns true if `words` configure a store with the kernel's branches.
[[nodiscard]] bool wants_kernel(std::span<const std::string_view> words);
/// Returns true if `words` configure a store; false if they remove it (size=0).
[[nodiscard]] bool makes_store(std::span<const std::string_view> words);
/// Returns true if `words` configure a store that needs every record.
[[nodiscard]] bool wants_stream(std::span<const std::string_view> words);

}  // namespace backtrail::server::handlers
