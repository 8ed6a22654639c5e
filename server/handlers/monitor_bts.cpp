// SPDX-License-Identifier: Apache-2.0
#include "server/handlers/monitor_bts.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <optional>
#include <utility>

#include <fmt/format.h>

namespace backtrail::server::handlers {
namespace {

using arch::x86::BtsQualifier;
using decoder::BranchStore;
using decoder::LossBound;
using decoder::StoreConfig;
using decoder::StoreLevel;
using decoder::StoreOverflow;

constexpr std::array<std::pair<StoreOverflow, std::string_view>, 3> kOverflows{{
    {StoreOverflow::kWrap, "wrap"},
    {StoreOverflow::kSignal, "signal"},
    {StoreOverflow::kStream, "stream"},
}};
constexpr std::array<std::pair<StoreLevel, std::string_view>, 3> kLevels{{
    {StoreLevel::kUser, "user"},
    {StoreLevel::kKernel, "kernel"},
    {StoreLevel::kBoth, "both"},
}};
constexpr int kLastSignal = 64;

std::string_view name_of(StoreOverflow overflow) {
  return kOverflows[static_cast<std::size_t>(overflow)].second;
}
std::string_view name_of(StoreLevel level) {
  return kLevels[static_cast<std::size_t>(level)].second;
}

/// Sets `out` to the table's value for `name`. Returns whether the table has the name.
template <typename Table, typename Value>
bool choose(const Table& table, std::string_view name, Value& out) {
  const auto* found =
      std::find_if(table.begin(), table.end(), [&](const auto& row) { return row.second == name; });
  if (found == table.end()) return false;
  out = found->first;
  return true;
}

template <typename T>
std::optional<T> number(std::string_view text) {
  T value{};
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || parsed.ec != std::errc{} || parsed.ptr != text.data() + text.size())
    return std::nullopt;
  return value;
}

/// Applies one word of a configuration. Returns false if the word is unknown.
bool apply(std::string_view word, StoreConfig& config) {
  const std::size_t equals = word.find('=');
  const std::string_view key = word.substr(0, equals);
  if (equals == std::string_view::npos) {
    if (key == "trace") return config.trace = true;
    if (key == "notrace") return config.trace = false, true;
    if (key == "sched") return config.sched = true;
    if (key == "kernel") return config.kernel = true;
    return false;
  }
  const std::string_view value = word.substr(equals + 1);
  if (key == "size") {
    const auto size = number<std::uint64_t>(value);
    if (size) config.size_bytes = *size;
    return size.has_value();
  }
  if (key == "signal") {
    const auto signal = number<int>(value);
    if (signal) config.signal = *signal;
    return signal && *signal > 0 && *signal <= kLastSignal;
  }
  if (key == "level") return choose(kLevels, value, config.level);
  return key == "overflow" && choose(kOverflows, value, config.overflow);
}

std::string text_of(const BranchStore::Entry& entry) {
  switch (entry.qualifier) {
    case BtsQualifier::kBranch:
      return fmt::format("branch  {:#x} -> {:#x}", entry.from, entry.to);
    case BtsQualifier::kTaskArrives:
      return fmt::format("arrives at {} ns", entry.timestamp);
    case BtsQualifier::kTaskDeparts:
      return fmt::format("departs at {} ns", entry.timestamp);
    case BtsQualifier::kInvalid:
      break;
  }
  if (entry.timestamp == 0) return "gap";
  return fmt::format("gap of {}{} {}records", entry.bound == LossBound::kAtLeast ? "at least " : "",
                     entry.timestamp, entry.bound == LossBound::kBatches ? "batches of " : "");
}

void append_entry(const BranchStore::Entry& entry, std::string& out) {
  out += text_of(entry);
  if (entry.thread != 0) out += fmt::format(", thread {}", entry.thread);
  out += '\n';
}

std::string status_text(const decoder::StoreStatus& status) {
  const StoreConfig& config = status.config;
  std::string text = fmt::format("size {} bytes, {} records, {} lost{}\n", config.size_bytes,
                                 status.entries, status.lost, status.stopped ? ", stopped" : "");
  text += fmt::format("{}{}{}, overflow {}", config.trace ? "trace" : "notrace",
                      config.sched ? ", sched" : "", config.kernel ? ", kernel" : "",
                      name_of(config.overflow));
  if (config.level != StoreLevel::kUser) text += fmt::format(", level {}", name_of(config.level));
  if (config.signal != 0) text += fmt::format(", signal {}", config.signal);
  return text + "\n";
}

bool configures(std::span<const std::string_view> words, std::string_view word) {
  return !words.empty() && words.front() == "config" &&
         std::find(words.begin(), words.end(), word) != words.end();
}

Result<std::string> configure(BranchStore& store, std::span<const std::string_view> words) {
  StoreConfig config;
  bool sized = false;
  for (const std::string_view word : words) {
    if (!apply(word, config)) return fail(TraceErrc::kInvalidArgument, "bts config");
    sized = sized || word.starts_with("size=");
  }
  if (!sized) return fail(TraceErrc::kInvalidArgument, "bts config: size=BYTES is missing");
  BT_CHECKED(store.config(config));
  if (config.size_bytes == 0) return std::string{"freed\n"};
  BT_TRY(const decoder::StoreStatus status, store.status());
  return status_text(status);
}

Result<std::string> drain(BranchStore& store) {
  BT_TRY(const std::vector<BranchStore::Entry> entries, store.drain());
  std::string text;
  for (const BranchStore::Entry& entry : entries) append_entry(entry, text);
  return text + fmt::format("{} records\n", entries.size());
}

}  // namespace

bool take_process(std::span<const std::string_view>& words) {
  if (words.empty() || words.front() != "process") return false;
  words = words.subspan(1);
  return true;
}

bool wants_sched(std::span<const std::string_view> words) {
  return configures(words, "sched");
}

bool wants_kernel(std::span<const std::string_view> words) {
  return configures(words, "level=kernel") || configures(words, "level=both");
}

bool makes_store(std::span<const std::string_view> words) {
  return !words.empty() && words.front() == "config" && !configures(words, "size=0");
}

bool wants_stream(std::span<const std::string_view> words) {
  return configures(words, "overflow=stream");
}

Result<std::string> run_bts_command(BranchStore& store, std::span<const std::string_view> words) {
  const std::string_view operation = words.empty() ? std::string_view{} : words.front();
  if (operation == "config") return configure(store, words.subspan(1));
  if (operation == "get" && words.size() == 2) {
    const auto index = number<std::uint64_t>(words[1]);
    if (!index) return fail(TraceErrc::kInvalidArgument, "bts get");
    BT_TRY(const BranchStore::Entry entry, store.get(*index));
    std::string text;
    append_entry(entry, text);
    return text;
  }
  if (words.size() != 1) return fail(TraceErrc::kInvalidArgument, "bts");
  if (operation == "status") {
    BT_TRY(const decoder::StoreStatus status, store.status());
    return status_text(status);
  }
  if (operation == "size") {
    BT_TRY(const std::uint64_t size, store.size());
    return fmt::format("{} records\n", size);
  }
  if (operation == "clear") {
    BT_CHECKED(store.clear());
    return std::string{"cleared\n"};
  }
  if (operation == "drain") return drain(store);
  return fail(TraceErrc::kInvalidArgument, "bts");
}

}  // namespace backtrail::server::handlers
