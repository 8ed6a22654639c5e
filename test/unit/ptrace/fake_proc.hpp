// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A folder that looks like /proc, with the contents that a test gives it.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace backtrail::tracee {

class FakeProc {
 public:
  FakeProc() {
    std::string pattern = (std::filesystem::temp_directory_path() / "bt-proc-XXXXXX").string();
    base_ = ::mkdtemp(pattern.data());
    std::filesystem::create_directory(base_ / "proc");
  }
  ~FakeProc() {
    std::error_code ignored;
    std::filesystem::remove_all(base_, ignored);
  }
  FakeProc(const FakeProc&) = delete;
  FakeProc& operator=(const FakeProc&) = delete;

  [[nodiscard]] std::string root() const { return (base_ / "proc").string(); }
  /// The folder that stands for "/".
  [[nodiscard]] std::filesystem::path base() const { return base_; }
  void add(const std::string& name, const std::string& text) const {
    const std::filesystem::path path = base_ / "proc" / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream{path} << text;
  }
  [[nodiscard]] std::string read(const std::string& name) const {
    std::ostringstream out;
    out << std::ifstream{base_ / "proc" / name}.rdbuf();
    return out.str();
  }
  /// Adds a process with one thread: stat, status and comm.
  void add_process(int pid, const std::string& name, const std::string& status_rest,
                   char state = 'S', unsigned flags = 0, int parent = 1) const {
    const std::string folder = std::to_string(pid) + "/";
    const std::string stat = std::to_string(pid) + " (" + name + ") " + state + " " +
                             std::to_string(parent) + " 1 1 0 0 " + std::to_string(flags) +
                             " 0 0 0 0 0 0 0 0 20 0 1 0 5 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 1 0\n";
    add(folder + "stat", stat);
    add(folder + "task/" + std::to_string(pid) + "/stat", stat);
    add(folder + "comm", name + "\n");
    add(folder + "status",
        "Name:\t" + name + "\nTgid:\t" + std::to_string(pid) + "\n" + status_rest);
  }

 private:
  std::filesystem::path base_;
};

}  // namespace backtrail::tracee
