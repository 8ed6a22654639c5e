// SPDX-License-Identifier: Apache-2.0
#include "ptrace/tracee/launch.hpp"

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <pty.h>
#include <sys/stat.h>

#include "ptrace/os/procfs.hpp"
#include "test/integration/traced_program.hpp"

namespace backtrail::tracee {
namespace {

namespace fs = std::filesystem;
using arch::x86::UserReg;

// Provides a temporary folder.
class Launch : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "bt-launch-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override {
    fs::remove_all(folder_);
    // No child of a launch may remain, not even a zombie.
    EXPECT_EQ(::waitpid(-1, nullptr, __WALL | WNOHANG), -1);
    EXPECT_EQ(errno, ECHILD);
  }
  std::string file(const std::string& name, const std::string& text, unsigned mode) {
    const fs::path path = folder_ / name;
    std::ofstream{path} << text;
    fs::permissions(path, static_cast<fs::perms>(mode));
    return path.string();
  }
  static LaunchSpec direct(const std::string& program) {
    LaunchSpec spec;
    spec.program = program;
    spec.through_shell = false;
    return spec;
  }

  fs::path folder_;
};

// Checks that the program is stopped outside any system call, before its first instruction.
void expect_fresh(const TracedProgram& program) {
  const auto regs = request::read_user_regs(program.pid());
  ASSERT_TRUE(regs);
  EXPECT_EQ((*regs)[UserReg::kRax], 0U);
  const auto info = request::syscall_info(program.pid());
  ASSERT_TRUE(info);
  EXPECT_EQ(info->phase, request::SyscallPhase::kNone);
  const auto signal = request::read_siginfo(program.pid());
  ASSERT_TRUE(signal);
  EXPECT_EQ(signal->si_signo, SIGTRAP);
}

TEST_F(Launch, StopsPieAtTheLinkersEntry) {
  TracedProgram program{"plain"};
  expect_fresh(program);
  EXPECT_EQ(program.process().isa, arch::Isa::kAmd64);
  EXPECT_EQ(ProcFs{}.exe(program.pid()).value(), fs::canonical(inferior_path("plain")).string());
  EXPECT_EQ(::getpgid(program.pid()), program.pid());
  EXPECT_EQ(program.run_to_trap(), 0);
  EXPECT_EQ(program.end().exit_code, 1);
}

TEST_F(Launch, StopsStaticProgramAtItsEntryPoint) {
  TracedProgram program{"three_steps"};
  expect_fresh(program);
  // The program has three instructions: two steps stay within, the third ends it.
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(request::step(program.pid()));
    int raw = 0;
    ASSERT_EQ(::waitpid(program.pid(), &raw, __WALL), program.pid());
    EXPECT_TRUE(WaitStatus::decode(raw).stopped());
  }
  EXPECT_EQ(request::peek_user_reg(program.pid(), UserReg::kRax).value(), 60U);
  EXPECT_EQ(program.run_to_trap(), 0);
  EXPECT_EQ(program.end().exit_code, 3);
}

TEST_F(Launch, Runs32BitPrograms) {
  if (!fs::exists(inferior_path("plain32"))) GTEST_SKIP() << "no 32-bit programs here";
  TracedProgram program{"plain32"};
  EXPECT_EQ(program.process().isa, arch::Isa::kI386);
  EXPECT_EQ(ProcFs{}.isa(program.pid()).value(), arch::Isa::kI386);
  expect_fresh(program);
  EXPECT_EQ(program.run_to_trap(), 0);
  EXPECT_EQ(program.end().exit_code, 1);
}

TEST_F(Launch, GoesThroughTheShell) {
  const std::string out = (folder_ / "words").string();
  LaunchSpec spec;
  spec.program = "printf";
  spec.arguments = {"'%s|'", "\"$BT_WORD\"", "plain\\ blank", ">" + out};
  spec.environment = std::vector<std::string>{"BT_WORD=two words", "PATH=/usr/bin:/bin"};
  TracedProgram program{spec};
  EXPECT_EQ(program.run_to_trap(), 0);
  EXPECT_EQ(program.end().exit_code, 0);
  std::string text;
  std::getline(std::ifstream{out}, text);
  EXPECT_EQ(text, "two words|plain blank|");
}

TEST_F(Launch, FollowsTheWrapper) {
  LaunchSpec spec;
  spec.program = inferior_path("plain");
  spec.wrapper = {"env", "BT_WRAPPED=1"};
  for (const bool shell : {true, false}) {
    spec.through_shell = shell;
    TracedProgram program{spec};
    EXPECT_EQ(ProcFs{}.comm(program.pid()).value(), "plain");
    expect_fresh(program);
    EXPECT_NE(ProcFs{}.read(program.pid(), "environ").value().find("BT_WRAPPED=1"),
              std::string::npos);
  }
}

TEST_F(Launch, IgnoresWhatTheShellForks) {
  // Commands in a shell's start-up script must neither hang nor count.
  const std::string script = file("shell", "#!/bin/sh\n/bin/true\n( : )\neval \"$2\"\n", 0755);
  const char* old = std::getenv("SHELL");
  const std::string saved = old != nullptr ? old : "/bin/sh";
  ::setenv("SHELL", script.c_str(), 1);
  LaunchSpec spec;
  spec.program = inferior_path("plain");
  TracedProgram program{spec};
  ::setenv("SHELL", saved.c_str(), 1);
  EXPECT_EQ(ProcFs{}.comm(program.pid()).value(), "plain");
  expect_fresh(program);
}

TEST_F(Launch, UsesTheDirectoryAndTheProtocolsStdio) {
  LaunchSpec spec = direct(inferior_path("plain"));
  spec.working_directory = folder_.string();
  spec.stdio_is_protocol = true;
  TracedProgram program{spec};
  const ProcFs proc;
  EXPECT_EQ(proc.working_directory(program.pid()).value(), fs::canonical(folder_).string());
  EXPECT_EQ(fs::read_symlink(proc.path(program.pid(), "fd/0")), "/dev/null");
  EXPECT_EQ(fs::read_symlink(proc.path(program.pid(), "fd/1")),
            fs::read_symlink(proc.path(program.pid(), "fd/2")));
}

TEST_F(Launch, PassesNoDescriptorOfOursOn) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);  // Without close-on-exec, on purpose.
  TracedProgram program{"plain"};
  EXPECT_FALSE(fs::exists(ProcFs{}.path(program.pid(), "fd/" + std::to_string(ends[0]))));
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_F(Launch, GivesTheInheritedSignalStateOn) {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGUSR1);
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  const auto old = ::signal(SIGPIPE, SIG_IGN);
  TracedProgram program{"plain"};
  ::signal(SIGPIPE, old);
  ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  const auto status = ProcFs{}.status(program.pid());
  ASSERT_TRUE(status);
  EXPECT_EQ(status->signals_blocked & (1U << (SIGUSR1 - 1)), 0U);
  EXPECT_EQ(status->signals_ignored & (1U << (SIGPIPE - 1)), 0U);
}

TEST_F(Launch, FixesAddressesOnRequest) {
  LaunchSpec spec = direct(inferior_path("plain"));
  TracedProgram first{spec};
  TracedProgram second{spec};
  EXPECT_EQ(request::read_user_regs(first.pid()).value().sp(),
            request::read_user_regs(second.pid()).value().sp());
  EXPECT_EQ(request::peek_pc(first.pid()).value(), request::peek_pc(second.pid()).value());
}

// Runs in a new session with a terminal: launches, and tells by its exit code what failed.
[[noreturn]] void use_terminal() {
  LaunchSpec spec;
  spec.program = inferior_path("plain");
  spec.through_shell = false;
  const auto launched = launch_process(spec);
  if (!launched) ::_exit(1);
  if (::tcgetpgrp(STDIN_FILENO) != launched->pid) ::_exit(2);
  if (launched->previous_foreground != ::getpgrp()) ::_exit(3);
  set_terminal_foreground(*launched->previous_foreground);
  if (::tcgetpgrp(STDIN_FILENO) != ::getpgrp()) ::_exit(4);
  spec.program = "/bin/sh";
  spec.arguments = {"-c", "exit"};
  spec.working_directory = "/no/such/folder";
  if (launch_process(spec)) ::_exit(5);
  if (::tcgetpgrp(STDIN_FILENO) != ::getpgrp()) ::_exit(6);
  ::_exit(0);  // The launched program dies with its tracer.
}

TEST_F(Launch, HandsTheTerminalOver) {
  int terminal = -1;
  const pid_t child = ::forkpty(&terminal, nullptr, nullptr, nullptr);
  if (child < 0) GTEST_SKIP() << "no pseudo terminal: " << std::strerror(errno);
  if (child == 0) use_terminal();
  int raw = 0;
  ASSERT_EQ(::waitpid(child, &raw, 0), child);
  EXPECT_EQ(WaitStatus::decode(raw).describe(), "exited 0");
  ::close(terminal);
}

TEST_F(Launch, TellsFailuresApart) {
  const std::string program = inferior_path("plain");
  const auto error_of = [](const LaunchSpec& spec) {
    auto launched = launch_process(spec);
    EXPECT_FALSE(launched) << spec.program;
    return launched ? Error{} : launched.error();
  };
  EXPECT_TRUE(error_of(direct("/no/such/program")).is(std::errc::no_such_file_or_directory));
  EXPECT_TRUE(error_of(direct("no-such-program-at-all")).is(std::errc::no_such_file_or_directory));
  EXPECT_TRUE(error_of(direct(folder_.string())).is(std::errc::is_a_directory));
  EXPECT_TRUE(error_of(direct(file("plain.txt", "x", 0644))).is(std::errc::permission_denied));
  EXPECT_TRUE(error_of(direct(file("text", "x", 0755))).is(std::errc::executable_format_error));
  const std::string arm(
      "\x7f"
      "ELF\2\1\1\0\0\0\0\0\0\0\0\0\2\0\xb7\0",
      20);
  EXPECT_TRUE(error_of(direct(file("arm", arm, 0755))).is(TraceErrc::kUnsupported));

  LaunchSpec nowhere = direct(program);
  nowhere.working_directory = (folder_ / "nowhere").string();
  const Error directory = error_of(nowhere);
  EXPECT_STREQ(directory.operation, "chdir");
  EXPECT_NE(launch_failure_text(directory, nowhere).find("nowhere"), std::string::npos);

  const LaunchSpec script = direct(file("script", "#!/no/such/interpreter\n", 0755));
  const Error interpreter = error_of(script);
  EXPECT_STREQ(interpreter.operation, "execve");
  EXPECT_NE(launch_failure_text(interpreter, script).find("interpreter"), std::string::npos);
}

TEST_F(Launch, ReportsHowTheStartUpEnded) {
  LaunchSpec spec;
  spec.program = inferior_path("plain");
  spec.wrapper = {"no-such-wrapper", "2>/dev/null"};
  const auto missing = launch_process(spec);
  ASSERT_FALSE(missing);
  EXPECT_TRUE(missing.error().is(TraceErrc::kStartupFailed));
  EXPECT_EQ(launch_failure_text(missing.error(), spec),
            "During startup program exited with code 127.");

  spec.wrapper = {"sh", "-c", "'kill -KILL $$'"};
  const auto killed = launch_process(spec);
  ASSERT_FALSE(killed);
  EXPECT_EQ(launch_failure_text(killed.error(), spec),
            "During startup program terminated with signal SIGKILL, Killed.");
}

TEST_F(Launch, EndsAnEndlessStartUp) {
  LaunchSpec spec;
  spec.program = inferior_path("plain");
  spec.wrapper = {"sleep", "1000", "#"};
  LaunchOptions options;
  options.timeout = std::chrono::milliseconds{50};
  const auto late = launch_process(spec, options);
  ASSERT_FALSE(late);
  EXPECT_TRUE(late.error().is(std::errc::timed_out));

  options = {};
  options.cancelled = [] { return true; };
  const auto cancelled = launch_process(spec, options);
  ASSERT_FALSE(cancelled);
  EXPECT_TRUE(cancelled.error().is(std::errc::operation_canceled));
}

/// The program's name in its auxiliary vector.
TEST_F(Launch, NamesProgramsAsACommandThatRunsOthersDoes) {
  file("tool", "#!/bin/sh\n", 0755);
  fs::create_directory(folder_ / "sub");
  LaunchSpec spec;
  spec.transparent = true;
  spec.working_directory = folder_.string();
  const auto named = [&](const std::string& program, const std::string& path) {
    spec.program = program;
    spec.environment = std::vector<std::string>{"PATH=" + path};
    const auto found = find_program(spec);
    return found ? *found : found.error().message();
  };
  EXPECT_EQ(named("./tool", ""), "./tool");
  EXPECT_EQ(named("sub/../tool", ""), "sub/../tool");
  EXPECT_EQ(named("tool", "/nonexistent:."), "./tool");
  EXPECT_EQ(named("tool", "/nonexistent:"), "tool");
  EXPECT_EQ(named("tool", "sub/.."), "sub/../tool");
  EXPECT_EQ(named("tool", folder_.string()), (folder_ / "tool").string());
}

}  // namespace
}  // namespace backtrail::tracee
