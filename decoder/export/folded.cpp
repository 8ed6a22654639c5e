// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <span>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "decoder/calls/call_follower.hpp"
#include "decoder/corefile/past_code.hpp"
#include "decoder/export/call_names.hpp"
#include "decoder/export/exports.hpp"
#include "decoder/export/gap_count.hpp"
#include "decoder/export/thread_lanes.hpp"
#include "decoder/report/clean_text.hpp"

namespace backtrail::decoder {
namespace {

/// Returns a frame's name without semicolons, which separate frames.
std::string frame_name(const std::string& name) {
  std::string out = printable(name);
  std::replace(out.begin(), out.end(), ';', ':');
  return out.empty() ? "?" : out;
}

constexpr std::uint32_t kMostFolded = 1000;

/// Stacks that occurred, each once, as a tree.
class StackTree {
 public:
  struct Node {
    std::uint32_t parent = 0;
    std::uint32_t name = 0;
    std::uint32_t depth = 0;
    std::uint64_t count = 0;
  };

  /// Returns the child for `name`, or `parent` itself at the depth limit. Without the limit a deep
  /// recursion would need space quadratic in its depth, because each line names all frames.
  std::uint32_t child(std::uint32_t parent, std::uint32_t name) {
    if (nodes_[parent].depth == kMostFolded) return parent;
    const auto [place, is_new] =
        children_.try_emplace(key(parent, name), static_cast<std::uint32_t>(nodes_.size()));
    if (is_new) {
      nodes_.push_back({parent, name, nodes_[parent].depth + 1, 0});
      if (parent == 0) outermost_.push_back(place->second);
    }
    return place->second;
  }
  void add(std::uint32_t node, std::uint64_t count) { nodes_[node].count += count; }
  /// Makes a new frame the caller of all stacks so far. Depths are not updated.
  std::uint32_t put_below_all(std::uint32_t name) {
    const auto around = static_cast<std::uint32_t>(nodes_.size());
    nodes_.push_back({0, name, 1, 0});
    for (const std::uint32_t node : outermost_) {
      children_.erase(key(0, nodes_[node].name));
      children_.emplace(key(around, nodes_[node].name), node);
      nodes_[node].parent = around;
    }
    children_.emplace(key(0, name), around);
    outermost_ = {around};
    return around;
  }
  [[nodiscard]] const std::vector<Node>& nodes() const { return nodes_; }
  void clear() {
    nodes_.resize(1);
    children_.clear();
    outermost_.clear();
  }

 private:
  static std::uint64_t key(std::uint32_t parent, std::uint32_t name) {
    return std::uint64_t{parent} << 32U | name;
  }

  std::vector<Node> nodes_{Node{}};
  std::unordered_map<std::uint64_t, std::uint32_t> children_;
  std::vector<std::uint32_t> outermost_;
};

/// Adds the stacks of one tree to another. A caller that showed late comes after its callees.
void merge(const StackTree& from, StackTree& into) {
  const auto& nodes = from.nodes();
  constexpr std::uint32_t kNone = ~0U;
  std::vector<std::uint32_t> place(nodes.size(), kNone);
  place[0] = 0;
  std::vector<std::uint32_t> path;
  for (std::uint32_t i = 0; i < nodes.size(); ++i) {
    for (std::uint32_t at = i; place[at] == kNone; at = nodes[at].parent) path.push_back(at);
    for (; !path.empty(); path.pop_back()) {
      const StackTree::Node& node = nodes[path.back()];
      place[path.back()] = into.child(place[node.parent], node.name);
    }
    into.add(place[i], nodes[i].count);
  }
}

/// Counts the branches of each stack as calls arrive. Memory use depends on the number of different
/// stacks.
class StackCounter final : public CallSink {
 public:
  explicit StackCounter(Symbols& symbols) : symbols_{symbols}, names_{symbols} {}

  void stretch() override {
    merge(stretch_, all_);
    stretch_.clear();
    open_.assign(1, Open{});
  }
  void begin(const Call& call) override {
    const Open& above = open_.back();
    // Calls that the dynamic linker makes to find a function are not the program's work.
    const bool dropped =
        above.dropped || (call.begin == CallBegin::kCalled && symbols_.at(call.site).stub);
    open_.push_back({dropped ? above.node : node_of(call, above.node), 0, dropped});
  }
  void rename(const Call& call) override {
    Open& top = open_.back();
    if (!top.dropped) top.node = node_of(call, open_[open_.size() - 2].node);
  }
  void end(const Call& call) override {
    const Open top = open_.back();
    open_.pop_back();
    if (top.dropped) return;
    const std::uint64_t length = call.end_position - call.begin_position;
    stretch_.add(top.node, length - top.inner);
    open_.back().inner += length;
  }
  void begin_around(const Call& call) override {
    const std::uint64_t inner = std::exchange(open_.back().inner, 0);
    open_.push_back({stretch_.put_below_all(names_.of(call)), inner, false});
  }

  void write(const std::string& title, const TextSink& sink) {
    stretch();
    const auto& nodes = all_.nodes();
    std::vector<std::uint32_t> path;
    std::string line;
    for (std::size_t i = 1; i < nodes.size(); ++i) {
      if (nodes[i].count == 0) continue;
      path.clear();
      for (auto at = static_cast<std::uint32_t>(i); at != 0; at = nodes[at].parent) {
        path.push_back(nodes[at].name);
      }
      line = title;
      for (std::size_t k = path.size(); k-- > 0;) {
        line += ';' + frame_name(names_.functions()[path[k]].name);
      }
      line += fmt::format(" {}\n", nodes[i].count);
      sink(line);
    }
  }

 private:
  struct Open {
    std::uint32_t node = 0;
    std::uint64_t inner = 0;  ///< Branches of the calls that it made.
    bool dropped = false;
  };

  std::uint32_t node_of(const Call& call, std::uint32_t caller) {
    std::uint32_t node = caller;
    if (call.begin == CallBegin::kCalled && call.site != TraceeAddr{}) {
      // Frames inlined around the call site, without the function that contains them.
      const auto& frames = symbols_.frames_at(call.site);
      for (std::size_t i = frames.size() - 1; i-- > 0;) {
        node = stretch_.child(node, names_.of_text(symbols_.text(frames[i].name)));
      }
    }
    return stretch_.child(node, names_.of(call));
  }

  Symbols& symbols_;
  CallNames names_;
  StackTree stretch_;
  StackTree all_;
  std::vector<Open> open_{Open{}};
};

}  // namespace

void write_folded(const ExportSource& source, const TextSink& sink) {
  PastCode insns{source.archive, source.code};
  for (const ThreadLane& lane : thread_lanes(source)) {
    StackCounter stacks{source.symbols};
    CallFollower calls{insns.at_end(), source.symbols, stacks, insns.of(lane.tid)};
    GapCount gaps;
    const auto take = [&](std::span<const Record> records, std::uint64_t end) {
      gaps.see(records);
      calls.feed(records, end);
    };
    source.archive.visit_numbered(lane.tid, source.branches, take);
    calls.finish();
    const std::string title = frame_name(lane.title);
    stacks.write(title, sink);
    if (!gaps.gaps().empty()) {
      sink(fmt::format("{};[gaps: branches are missing] {}\n", title,
                       std::max<std::uint64_t>(gaps.lost(), gaps.gaps().size())));
    }
  }
}

}  // namespace backtrail::decoder
