#pragma once
/// @file
/// `monitor bts`: the branch trace store's operations as commands. docs/backtrail-bts.7 describes
/// them.

#include <span>
#include <string>
#include <string_view>

#include "arch/base/result.hpp"
#include "decoder/bts/branch_store.hpp"

namespace backtrail::server::handlers {

/// Runs one command on a store. `words` begin with the operation.
/// @return What is printed. Error kInvalidArgument for words that make no sense, else the store's.
[[nodiscard]] Result<std::string> run_bts_command(decoder::BranchStore& store,
                                                  std::span<const std::string_view> words);
/// Takes the word that says that the store is the process's. Returns whether it is there.
[[nodiscard]] bool take_process(std::span<const std::string_view>& words);
/// Whether it is a configuration that asks for scheduling marks.
[[nodiscard]] bool wants_sched(std::span<const std::string_view> words);
/// Whether it is one of a store that wants the kernel's branches.
[[nodiscard]] bool wants_kernel(std::span<const std::string_view> words);
/// Whether there is a store behind it.
[[nodiscard]] bool makes_store(std::span<const std::string_view> words);
/// Whether it is one of a store that wants every record.
[[nodiscard]] bool wants_stream(std::span<const std::string_view> words);

}  // namespace backtrail::server::handlers
