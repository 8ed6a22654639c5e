// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// `backtrail tail`: prints the records of a server's threads while gdb uses them.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <sys/types.h>

#include "arch/base/result.hpp"
#include "decoder/trace/record.hpp"
#include "server/target/tail_client.hpp"

namespace backtrail::server {

enum class TailFormat : std::uint8_t {
  kText,        ///< A line a record, in words.
  kPerfScript,  ///< A line a branch like `perf script -F pid,tid,ip,addr`; other news after #.
  kRaw,         ///< The server's bytes (server/target/tail_server.hpp); `decode` reads them.
};

struct TailOptions {
  std::string path;              ///< Socket of `serve --tail`.
  std::optional<pid_t> thread;   ///< Show only this thread.
  std::optional<pid_t> process;  ///< Show only this process's threads.
  std::uint64_t records = 0;     ///< Records after which to end; 0 = no limit.
  TailFormat format = TailFormat::kText;
};

/// Parses a tail server's bytes, in pieces of any size.
class TailReader {
 public:
  struct Item {
    pid_t pid = 0;
    pid_t tid = 0;
    std::uint64_t lost = 0;  ///< Records lost before this item because this client was slow.
    std::optional<decoder::Record> record = std::nullopt;  ///< nullopt: only news and losses.
    TailNews news = TailNews::kNone;
  };
  /// Returns the items complete now. Bytes that are not a tail server's yield none and set
  /// broken().
  std::vector<Item> add(std::span<const std::uint8_t> bytes);
  [[nodiscard]] bool broken() const { return broken_; }
  [[nodiscard]] bool greeted() const { return greeted_; }
  /// Returns the number of bytes that wait for the rest of their item.
  [[nodiscard]] std::size_t waiting() const { return bytes_.size(); }

 private:
  std::vector<std::uint8_t> bytes_;
  bool greeted_ = false;
  bool broken_ = false;
};

/// Returns "4711 branch 0x... -> 0x..."; empty for items that concern only this program.
[[nodiscard]] std::string tail_line(const TailReader::Item& item);

/// Formats items.
class TailWriter {
 public:
  explicit TailWriter(TailFormat format) : format_{format} {}
  void add(const TailReader::Item& item);
  /// Returns the finished text and removes it.
  [[nodiscard]] std::string take();

 private:
  void end_frame();

  TailFormat format_;
  std::string out_;
  TailReader::Item first_;  ///< First item of the frame in progress.
  std::vector<decoder::Record> frame_;
  bool greeted_ = false;
};

/// Returns the text of a file in the raw format.
[[nodiscard]] Result<std::string> tail_file_text(std::span<const std::uint8_t> bytes);

/// Explains why a path has no listener, from the errno of connect(2).
[[nodiscard]] std::string explain_tail_path(const std::string& path, int error);

/// Prints lines until the server ends. Returns the exit status.
int run_tail(const TailOptions& options);

}  // namespace backtrail::server
