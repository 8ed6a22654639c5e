// SPDX-License-Identifier: Apache-2.0
// Programs that see other files than the server: after chroot(2), after pivot_root(2), in their own
// mount namespace, in a container without privileges, and with their file deleted.

#include <filesystem>
#include <ostream>
#include <string>
#include <vector>

#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/gdb/on_program.hpp"
#include "test/support/temporary_folder.hpp"

namespace backtrail::test {
namespace {

namespace fs = std::filesystem;

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kLinker = "/lib64/ld-linux-x86-64.so.2";
constexpr const char* kLibc = "/lib/x86_64-linux-gnu/libc.so.6";

GdbOptions unconnected() {
  GdbOptions options;
  options.server_options = {"--attach"};
  options.connect = false;
  return options;
}

std::string attach_command(pid_t pid) {
  std::string command = "target remote | ";
  for (const std::string& word : server_command(Peer::kUnderTest)) command += word + " ";
  return command + "--attach - " + std::to_string(pid);
}

/// A way to run a program with a folder as its root.
struct Way {
  const char* name;
  /// Shell script to run in the parent of that folder; the folder is "root", and "unshare $U" makes
  /// namespaces.
  const char* script;
};

void PrintTo(const Way& way, std::ostream* out) {
  *out << way.name;
}

class ForeignRoot : public ::testing::TestWithParam<Way> {
 protected:
  void SetUp() override {
    if (!fs::exists(kLinker) || !fs::exists(kLibc)) GTEST_SKIP() << "no libc at " << kLibc;
    const fs::path root = folder_ / "root";
    fs::create_directories(root / "lib64");
    fs::create_directories(root / "odd");
    fs::create_directories(root / "old");
    fs::copy_file(kLinker, root / fs::path{kLinker}.relative_path());
    // Copies the C library to a place where the server's root has none.
    fs::copy_file(kLibc, root / "odd/libc.so.6");
    fs::copy_file(inferior("spin"), root / "spin");
    const bool privileged = ::geteuid() == 0;
    Subprocess attempt{{.arguments = {"unshare", privileged ? "-m" : "-Urm", "true"},
                        .environment = test_environment(),
                        .working_directory = "/"}};
    const auto status = attempt.wait(deadline_in(std::chrono::seconds{60}));
    if (!status || *status != 0) GTEST_SKIP() << "unshare(1) makes no namespaces here";
    if (!privileged && std::string{GetParam().name} == "Chroot") {
      GTEST_SKIP() << "chroot(2) needs root";
    }
  }
  [[nodiscard]] SpawnOptions program() const {
    std::vector<std::string> environment = test_environment();
    environment.emplace_back("LD_LIBRARY_PATH=/odd");
    environment.emplace_back(::geteuid() == 0 ? "U=-m" : "U=-Urm");
    return {.arguments = {"sh", "-ec", GetParam().script},
            .environment = std::move(environment),
            .working_directory = folder_.path()};
  }

  TemporaryFolder folder_;
};

TEST_P(ForeignRoot, ProgramAndLibrariesAreFound) {
  Subprocess spin{program()};
  ASSERT_TRUE(spin.output().find("ready", 0, deadline_in(std::chrono::seconds{60})))
      << spin.output().text();
  GdbSession gdb{unconnected()};
  gdb.run_all({"set sysroot target:", attach_command(spin.pid())});
  EXPECT_THAT(gdb.run("info sharedlibrary"),
              AllOf(HasSubstr("target:/odd/libc.so.6"), Not(HasSubstr("No  "))));
  EXPECT_THAT(gdb.run("backtrace"), HasSubstr("main ("));
  gdb.run_all({"break usleep", "continue", "delete"});
  EXPECT_THAT(gdb.run("backtrace"), AllOf(HasSubstr("usleep"), HasSubstr("wait_outside")));
  gdb.run_all({"set var go_on = 1", "detach"});
  const auto status = spin.wait(deadline_in(std::chrono::seconds{60}));
  ASSERT_TRUE(status);
  EXPECT_EQ(WEXITSTATUS(*status), 3);
}

INSTANTIATE_TEST_SUITE_P(
    Ways, ForeignRoot,
    ::testing::Values(
        Way{"Chroot", "exec chroot root /spin"},
        Way{"MountsAndChroot", "exec unshare $U chroot root /spin"},
        Way{"MountedOver",
            "exec unshare $U sh -ec 'mount --rbind root /mnt; exec chroot /mnt /spin'"},
        Way{"PivotRoot",
            "exec unshare $U sh -ec 'mount --bind root root; cd root; pivot_root . old; exec "
            "/spin'"},
        Way{"Container", "exec unshare -Urm chroot root /spin"}),
    [](const auto& tested) { return std::string{tested.param.name}; });

/// Whether gdb reads the program's file through the server or itself.
class DeletedProgram : public ::testing::TestWithParam<const char*> {};

/// Replaces the program's file while it runs, like a build.
TEST_P(DeletedProgram, IsTheOneThatRuns) {
  const TemporaryFolder folder;
  fs::copy_file(inferior("spin"), folder / "spin");
  Subprocess spin{{.arguments = {folder / "spin"},
                   .environment = test_environment(),
                   .working_directory = "/"}};
  ASSERT_TRUE(spin.output().find("ready", 0, deadline_in(std::chrono::seconds{60})));
  fs::remove(folder / "spin");
  fs::copy_file(inferior("calls"), folder / "spin");
  GdbSession gdb{unconnected()};
  gdb.run_all({std::string{"set sysroot "} + GetParam(), attach_command(spin.pid())});
  gdb.run_all({"break wait_outside", "delete"});
  EXPECT_THAT(gdb.run("info line wait_outside"), HasSubstr("spin.c"));
  gdb.run_all({"set var go_on = 1", "detach"});
  const auto status = spin.wait(deadline_in(std::chrono::seconds{60}));
  ASSERT_TRUE(status);
  EXPECT_EQ(WEXITSTATUS(*status), 3);
}

INSTANTIATE_TEST_SUITE_P(Sysroots, DeletedProgram, ::testing::Values("target:", ""),
                         [](const auto& tested) {
                           return *tested.param == '\0' ? "ClientsFiles" : "ServersFiles";
                         });

}  // namespace
}  // namespace backtrail::test
