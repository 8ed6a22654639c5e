#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>

#include "decoder/export/call_names.hpp"
#include "decoder/export/call_walk.hpp"
#include "decoder/export/exports.hpp"
#include "decoder/export/thread_lanes.hpp"
#include "decoder/report/clean_text.hpp"
#include "decoder/report/thread_calls.hpp"

namespace backtrail::decoder {
namespace {

/// A frame's name: semicolons separate frames.
std::string frame_name(const std::string& name) {
  std::string out = printable(name);
  std::replace(out.begin(), out.end(), ';', ':');
  return out.empty() ? "?" : out;
}

constexpr std::uint32_t kMostFolded = 1000;

/// Stacks that occurred, each once. A line names every frame below it, so without a limit a deep
/// recursion would take space by the square of its depth.
class StackTree {
 public:
  /// `parent` itself, when it is as deep as stacks are shown.
  std::uint32_t child(std::uint32_t parent, std::uint32_t name) {
    if (nodes_[parent].depth == kMostFolded) return parent;
    const std::uint64_t key = std::uint64_t{parent} << 32U | name;
    const auto [place, is_new] =
        children_.try_emplace(key, static_cast<std::uint32_t>(nodes_.size()));
    if (is_new) nodes_.push_back({parent, name, nodes_[parent].depth + 1, 0});
    return place->second;
  }
  void add(std::uint32_t node, std::int64_t count) { nodes_[node].count += count; }

  void write(const std::string& title, const std::vector<CallNames::Function>& names,
             const TextSink& sink) const {
    std::vector<std::uint32_t> path;
    std::string line;
    for (std::size_t i = 1; i < nodes_.size(); ++i) {
      if (nodes_[i].count <= 0) continue;
      path.clear();
      for (auto at = static_cast<std::uint32_t>(i); at != 0; at = nodes_[at].parent) {
        path.push_back(nodes_[at].name);
      }
      line = title;
      for (std::size_t k = path.size(); k-- > 0;) line += ';' + frame_name(names[path[k]].name);
      line += fmt::format(" {}\n", nodes_[i].count);
      sink(line);
    }
  }

 private:
  struct Node {
    std::uint32_t parent = 0;
    std::uint32_t name = 0;
    std::uint32_t depth = 0;
    std::int64_t count = 0;
  };
  std::vector<Node> nodes_{Node{}};
  std::unordered_map<std::uint64_t, std::uint32_t> children_;
};

std::int64_t length_of(const Call& call) {
  return static_cast<std::int64_t>(call.end_position - call.begin_position);
}

}  // namespace

void write_folded(const ExportSource& source, const TextSink& sink) {
  InsnCache insns{source.code};
  for (const ThreadLane& lane : thread_lanes(source)) {
    const ThreadCalls traced =
        rebuild_calls(source.archive, lane.tid, source.branches, insns, source.symbols);
    CallNames names{source.symbols};
    StackTree tree;
    std::vector<std::uint32_t> stack{0};
    walk_calls(
        traced.calls,
        [&](std::size_t index) {
          const Call& call = traced.calls[index];
          std::uint32_t node = stack.back();
          tree.add(node, -length_of(call));
          if (call.begin == CallBegin::kCalled && call.site != TraceeAddr{}) {
            // Functions inlined around the call; not the one that they are in.
            const auto& frames = source.symbols.frames_at(call.site);
            for (std::size_t i = frames.size() - 1; i-- > 0;) {
              node = tree.child(node, names.of_text(source.symbols.text(frames[i].name)));
            }
          }
          node = tree.child(node, names.of(call));
          tree.add(node, length_of(call));
          stack.push_back(node);
        },
        [&](std::size_t /*index*/) { stack.pop_back(); });
    tree.write(frame_name(lane.title), names.functions(), sink);
  }
}

}  // namespace backtrail::decoder
