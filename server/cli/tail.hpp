#pragma once
/// @file
/// `backtrail tail`: prints what a server's recorded threads do, while gdb uses them.

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
  kPerfScript,  ///< A line a branch, as `perf script -F pid,tid,ip,addr` has it; other news behind
                ///< #.
  kRaw,         ///< As the server sends it (server/target/tail_server.hpp); `decode` reads it.
};

struct TailOptions {
  std::string path;              ///< The socket that `serve --tail` listens on.
  std::optional<pid_t> thread;   ///< Only this one.
  std::optional<pid_t> process;  ///< Only this one's threads.
  std::uint64_t records = 0;     ///< End after so many; 0 = all of them.
  TailFormat format = TailFormat::kText;
};

/// Takes a tail server's bytes apart, in pieces of any size.
class TailReader {
 public:
  struct Item {
    pid_t pid = 0;
    pid_t tid = 0;
    std::uint64_t lost = 0;  ///< Before this record, because we were slow.
    std::optional<decoder::Record> record = std::nullopt;  ///< Or only news, and what was lost.
    TailNews news = TailNews::kNone;
  };
  /// What is complete now. Bytes that are no tail server's give nothing, and broken().
  std::vector<Item> add(std::span<const std::uint8_t> bytes);
  [[nodiscard]] bool broken() const { return broken_; }
  [[nodiscard]] bool greeted() const { return greeted_; }
  /// Bytes that wait for what makes them complete.
  [[nodiscard]] std::size_t waiting() const { return bytes_.size(); }

 private:
  std::vector<std::uint8_t> bytes_;
  bool greeted_ = false;
  bool broken_ = false;
};

/// "4711 branch 0x... -> 0x..."; none of what is only news to us.
[[nodiscard]] std::string tail_line(const TailReader::Item& item);

/// Items in one of the formats.
class TailWriter {
 public:
  explicit TailWriter(TailFormat format) : format_{format} {}
  void add(const TailReader::Item& item);
  /// What is ready, once.
  [[nodiscard]] std::string take();

 private:
  void end_frame();

  TailFormat format_;
  std::string out_;
  TailReader::Item first_;  ///< Of the frame that has been begun.
  std::vector<decoder::Record> frame_;
  bool greeted_ = false;
};

/// What a file of the raw format holds, as text.
[[nodiscard]] Result<std::string> tail_file_text(std::span<const std::uint8_t> bytes);

/// Why nobody answers at a path, from the errno of connect(2).
[[nodiscard]] std::string explain_tail_path(const std::string& path, int error);

/// Prints lines until what is listened to ends; the exit status.
int run_tail(const TailOptions& options);

}  // namespace backtrail::server
