#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random commands of gdb to a program that forks, executes, starts threads and gets killed.

usage: chaos.py BACKTRAIL PROGRAM [--sessions N | --seconds N] [--seed N] [--limit SECONDS] [--gdb GDB]

Every session draws its options (source of branches, non-stop, what happens to children, recording) and
its commands from a seed, which is printed: `--seed N --sessions 1` draws the same again. A session
fails if gdb waits longer than the limit for an answer, if the program does not stop in time when it is
asked to, or if anything of it is left afterwards: the server, a traced process, or one that is stopped.
"""
import argparse
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from gdb_session import Ended, Gdb, Stuck  # noqa: E402

MARK = "BACKTRAIL_CHAOS"
# How long the program lives at most, in seconds.
LIFE = 8


def processes_with(mark):
    """@return {pid: (command, state)} of the living processes that have the mark in their environment."""
    found = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open("/proc/%s/environ" % name, "rb") as file:
                if mark not in file.read():
                    continue
            with open("/proc/%s/stat" % name, encoding="utf-8", errors="replace") as file:
                text = file.read()
        except OSError:
            continue
        command = text[text.index("(") + 1:text.rindex(")")]
        state = text[text.rindex(")") + 2]
        if state not in "ZX":
            found[int(name)] = (command, state)
    return found


class Session:
    """One gdb, one server, one program."""

    def __init__(self, options, seed, folder):
        self.options, self.seed, self.folder = options, seed, folder
        self.draw = random.Random(seed)
        self.log_lines = []
        self.mark = ("%s=%d.%d" % (MARK, os.getpid(), seed)).encode()
        self.server_log = os.path.join(folder, "server.%d.log" % seed)
        self.said = os.path.join(folder, "said.%d" % seed)
        self.non_stop = self.draw.random() < 0.3
        self.records = False
        self.child = None  # the program, if the server attaches to it
        self.server = None
        self.gdb = None
        self.gdb_waits = False  # gdb waited too long although the server owed nothing

    def log(self, text):
        self.log_lines.append("%8.3f %s" % (time.monotonic() - self.begin, text))

    def run(self):
        """@return None, or what went wrong."""
        self.begin = time.monotonic()
        environment = dict(os.environ)
        name, value = self.mark.decode().split("=")
        environment[name] = value
        self.gdb = Gdb([self.options.gdb, "-nx", "-q", "-i=mi3"], environment, self.options.limit,
                       self.log)
        fault = None
        try:
            self.connect(environment)
            for _ in range(self.draw.randint(5, 40)):
                if not self.act():
                    break
            self.leave()
        except Stuck as stuck:
            if self.server_owes():
                fault = str(stuck)
            else:
                self.gdb_waits = True
                self.log("gdb waits although the server has answered: %s" % stuck)
        except (Ended, BrokenPipeError) as ended:
            # Faults of gdb's or the program's own are not the server's, which has to end all the
            # same.
            self.log("ended: %s" % ended)
        self.gdb.end()
        return fault or self.leftovers() or self.failures()

    def failures(self):
        """@return how the server or the program, whose calls all succeed, has failed; or None."""
        said = self.what_was_said()
        return said if re.search("terminate called|Sanitizer|rror:|ssertion", said) else None

    # --- beginning

    def connect(self, environment):
        command = self.gdb.command
        for setting in ("confirm off", "pagination off", "breakpoint pending off", "width 0",
                        "debuginfod enabled off", "sysroot /", "mi-async on",
                        "remotetimeout %d" % self.options.limit):
            command("set " + setting)
        for problem in ("internal-error", "internal-warning"):
            command("maint set %s corefile no" % problem)
            command("maint set %s quit %s" % (problem, "yes" if "error" in problem else "no"))
        if self.non_stop and not self.options.all_stop:
            command("set non-stop on")
            self.gdb.non_stop = True
        if self.draw.random() < 0.3:
            command("set schedule-multiple on")
        self.keeps_children = self.draw.random() < 0.4
        if self.keeps_children:
            command("set detach-on-fork off")
        command("set follow-fork-mode " + self.draw.choice(["parent", "parent", "child"]))
        command("set follow-exec-mode " + self.draw.choice(["same", "same", "new"]))
        command("set can-use-hw-watchpoints %d" % self.draw.choice([0, 1, 1, 1]))
        if self.draw.random() < 0.3:
            command("set displaced-stepping " + self.draw.choice(["on", "off"]))
        command("file " + self.options.program)
        source = self.draw.choice(["cache", "cache", "step", "auto"])
        from_start = self.draw.random() < 0.25
        if self.options.peer:
            words = [self.options.peer, "--once"]
        else:
            words = [self.options.backtrail, "serve", "--once", "--source", source]
            words += ["--from-start"] if from_start else []
            words += ["--log", "rsp:debug", "--log-file", self.server_log]
        program = [self.options.program, str(self.seed), str(LIFE)]
        # A program in vfork() cannot be stopped while gdb holds its child.
        program.append("fork" if self.keeps_children else "vfork")
        where = "localhost:0"
        with open(self.said, "wb") as said:
            streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": said}
            if self.draw.random() < 0.25:
                self.child = subprocess.Popen(program, env=environment, **streams)
                words += ["--attach", where, str(self.child.pid)]
            else:
                words += [where] + program
            self.server = subprocess.Popen(words, env=environment, **streams)
        # Not through a pipe: gdb reads slowly from one.
        command("target remote localhost:%s" % self.port())
        self.gdb.settle(0.5)

    def port(self):
        """@return the port that the server says it listens on."""
        until = time.monotonic() + self.options.limit
        while time.monotonic() < until and self.server.poll() is None:
            found = re.search(r"Listening on port ([0-9]+)", self.what_was_said())
            if found:
                return found.group(1)
            time.sleep(0.01)
        if self.child is not None and self.child.poll() is not None:
            raise Ended("the program ended before the server attached to it")
        raise Stuck("the server does not listen: " + self.what_was_said())

    def what_was_said(self):
        """@return what the server and the program have printed on stderr."""
        with open(self.said, encoding="utf-8", errors="replace") as file:
            return file.read()

    # --- what happens

    def act(self):
        """Does one thing at random. @return False if there is nothing to do any more."""
        if self.gdb.running:
            return self.act_while_running()
        return self.act_while_stopped()

    def act_while_running(self):
        if self.draw.random() < 0.25:
            self.disturb()
        if self.gdb.settle(self.draw.random() * 0.4):
            return self.has_process()
        if self.draw.random() < 0.2:
            self.gdb.command(self.draw.choice(["info threads", "info inferiors", "tbreak leaf"]))
            return True
        self.gdb.command("-exec-interrupt --all")
        self.gdb.stopped("-exec-interrupt")
        return True

    def act_while_stopped(self):
        groups = self.draw.random()
        if groups < 0.03:
            self.disturb()
        if groups < 0.45:
            command = self.running_command()
        elif groups < 0.65 and self.record_command() is not None:
            command = self.record_command()
        else:
            command = self.looking_command()
        before = bool(self.gdb.running)
        if self.gdb.command(command).startswith("exit"):
            return False
        if not before and self.gdb.running and not command.startswith("-exec-continue"):
            # Steps may wait for other threads for long, so they are interrupted, too.
            if not self.gdb.settle(self.draw.random()):
                self.gdb.command("-exec-interrupt --all")
                self.gdb.stopped("-exec-interrupt after " + command)
        # Without a process gdb 13 does not come back from some commands.
        return self.has_process()

    def has_process(self):
        """@return True if gdb has one, as far as it knows."""
        return bool(self.gdb.running) or "pid=" in self.gdb.command("-list-thread-groups")

    def running_command(self):
        draw = self.draw
        # In non-stop gdb 13 does not come back from going backwards, which the server refuses.
        back = [] if self.non_stop else ["reverse-stepi &", "reverse-next &", "reverse-continue &"]
        return draw.choice(back + [
            "-exec-continue --all", "-exec-continue --all", "-exec-continue --all", "-exec-step",
            "-exec-next", "-exec-next", "-exec-step-instruction",
            "stepi %d &" % draw.randint(1, 200), "nexti &", "-exec-finish", "until &",
            "signal SIGUSR1 &", "signal 0 &", "call twice(21)"])

    def record_command(self):
        draw = self.draw
        return draw.choice([
            "record btrace", "record btrace bts", "record btrace pt", "record stop", "info record",
            "record function-call-history", "record instruction-history", "record goto begin",
            "record goto end", "maint btrace clear", "monitor history on", "monitor history off"])

    def looking_command(self):
        draw = self.draw
        return draw.choice([
            "info threads", "thread apply all bt 2", "bt", "x/4i $pc", "info registers", "p worked",
            "p $_siginfo", "p twice(4)", "info inferiors", "info sharedlibrary", "info signals",
            "tbreak work", "break leaf if rounds == %d" % draw.randint(0, 9), "break work thread 1",
            "hbreak leaf", "watch worked if worked == -1", "rwatch handled", "delete",
            "catch fork", "catch vfork", "catch exec", "catch syscall", "tcatch syscall write",
            "handle SIGUSR1 nostop noprint pass", "handle SIGUSR2 stop print nopass",
            "thread %d" % draw.randint(1, 5), "inferior %d" % draw.randint(1, 3),
            "set var worked = 3",
            "set scheduler-locking " + draw.choice(["on", "off", "step", "replay"]),
            "detach inferiors 2", "kill inferiors 2"])

    def disturb(self):
        """Sends a signal from outside to a process or thread of the program."""
        victims = [pid for pid, (name, _) in processes_with(self.mark).items() if name == "chaos"]
        if not victims:
            return
        pid = self.draw.choice(sorted(victims))
        number = self.draw.choice([signal.SIGKILL, signal.SIGUSR1, signal.SIGUSR2, signal.SIGSTOP,
                                   signal.SIGCONT, signal.SIGTERM, signal.SIGSEGV])
        self.log("! signal %d to %d" % (number, pid))
        try:
            os.kill(pid, number)
            if number == signal.SIGSTOP:
                time.sleep(0.05)
                os.kill(pid, signal.SIGCONT)
        except ProcessLookupError:
            pass

    # --- the end

    def leave(self):
        way = self.draw.choice(["kill", "detach", "quit", "disconnect", "gone"])
        self.log("# leaves: " + way)
        if way == "gone":
            return
        if way == "quit":
            self.gdb.command("-gdb-exit")
            return
        if self.gdb.running:
            self.gdb.command("-exec-interrupt --all")
            self.gdb.stopped("-exec-interrupt before " + way)
        self.gdb.command(way)

    def server_owes(self):
        """@return True if gdb waits for the server. In all-stop its log says so: the last request has
        no answer, or the last resumption no stop."""
        if self.non_stop:
            return True
        owes = False
        try:
            with open(self.server_log, encoding="utf-8", errors="replace") as file:
                for line in file:
                    if " <- $" in line:
                        owes = True
                    elif " -> $" in line:
                        owes = False
        except OSError:
            return True
        return owes

    def leftovers(self):
        """Waits until the server has ended and the program has, which lives for a limited time. @return
        what is left, or None."""
        until = time.monotonic() + LIFE + self.options.limit
        while True:
            for own in filter(None, (self.child, self.server)):
                own.poll()
            left = processes_with(self.mark)
            if not left:
                return None
            if time.monotonic() > until:
                break
            time.sleep(0.05)
        for pid in left:
            self.log("left: %d %s, state %s\n%s" % (pid, *left[pid], stacks(pid)))
            os.kill(pid, signal.SIGKILL)
        return "left: " + ", ".join("%s in state %s" % found for found in left.values())

    def show(self, lines):
        print("\n".join(self.log_lines[-lines:]))
        try:
            with open(self.server_log, encoding="utf-8", errors="replace") as file:
                print("--- the server's log\n" + "".join(file.readlines()[-lines:]))
        except OSError:
            pass


def stacks(pid):
    """@return the states of a process's threads."""
    out = []
    try:
        for tid in os.listdir("/proc/%d/task" % pid):
            with open("/proc/%d/task/%s/status" % (pid, tid), encoding="utf-8") as file:
                fields = [line.strip() for line in file
                          if line.split(":")[0] in ("State", "TracerPid", "SigPnd", "ShdPnd")]
            out.append("  thread %s: %s" % (tid, ", ".join(fields)))
    except OSError:
        pass
    return "\n".join(out)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("backtrail")
    parser.add_argument("program")
    parser.add_argument("--sessions", type=int, default=10)
    parser.add_argument("--seconds", type=float, help="as many sessions as begin within the time")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--limit", type=int, default=10)
    parser.add_argument("--lines", type=int, default=60, help="of the logs, for a session that fails")
    parser.add_argument("--all-stop", action="store_true", help="no session in non-stop mode")
    parser.add_argument("--gdb", default="gdb")
    parser.add_argument("--peer", help="gdbserver, to see which faults are gdb's own")
    options = parser.parse_args()
    options.backtrail = os.path.abspath(options.backtrail)
    options.program = os.path.abspath(options.program)
    first = options.seed if options.seed is not None else random.SystemRandom().randrange(1 << 30)
    print("chaos: first seed %d" % first, flush=True)
    begin, failed, count, waits = time.monotonic(), 0, 0, 0
    with tempfile.TemporaryDirectory(prefix="backtrail-chaos.") as folder:
        while (count < options.sessions if options.seconds is None
               else time.monotonic() - begin < options.seconds):
            session = Session(options, first + count, folder)
            count += 1
            fault = session.run()
            waits += session.gdb_waits
            if fault is None:
                continue
            failed += 1
            print("chaos: seed %d: %s" % (session.seed, fault))
            session.show(options.lines)
            sys.stdout.flush()
    print("chaos: %d sessions, %d failed; in %d gdb waited although the server owed nothing" %
          (count, failed, waits))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
