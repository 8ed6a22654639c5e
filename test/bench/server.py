#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures what a person waits for at gdb's prompt, with Backtrail and with gdbserver.

usage: server.py BUILD [--runs N] [--only NAME,...] [--gdbserver PROGRAM] [--gdb PROGRAM]

Every line is a gdb session of its own, with each server in turns. gdb takes the time itself, from
before the command to after it, so that starts are not counted. Prints medians and their ratio: 2.0
means that gdbserver takes twice as long.
"""
import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.join(HERE, "server_program.cpp")
TIME_LIMIT = 60

# gdb runs it before and after what is measured; some gdbs have no Python.
CLOCK = "shell date +'TIME %s.%N'"


def mark(name):
    with open(SOURCE, encoding="utf-8") as source:
        for number, line in enumerate(source, 1):
            if line.rstrip().endswith("// " + name):
                return "server_program.cpp:%d" % number
    sys.exit("server.py: no mark %s in %s" % (name, SOURCE))


class Line:
    """One measurement: commands before the timed ones, the timed ones, and the program's arguments.
    `attach`: the program runs already, and the server waits for its number. `remote_symbols`: gdb reads
    the program's files through the connection."""

    def __init__(self, name, words, before, timed, attach=False, remote_symbols=False):
        self.name, self.words, self.before, self.timed = name, words, before, timed
        self.attach, self.remote_symbols = attach, remote_symbols


def lines():
    ready = ["break ready", "continue", "delete"]
    return [
        Line("500 stepi", ["loop", "100000"], ready, ["stepi 500"]),
        Line("next over a loop of 5,000", ["loop", "5000"],
             ready + ["tbreak " + mark("LOOP"), "continue"], ["next"]),
        Line("until the end of a loop of 5,000", ["loop", "5000"],
             ready + ["tbreak " + mark("UNTIL"), "continue"], ["until", "until"]),
        Line("software watchpoint, 100 rounds", ["loop", "100"],
             ready + ["tbreak " + mark("LOOP"), "continue", "set can-use-hw-watchpoints 0",
                      "watch sum if sum > 4000"], ["continue"]),
        Line("false condition, 10,000 hits", ["visits", "10000"],
             ready + ["break visit if i == 9999"], ["continue"]),
        Line("64 MB of memory", ["memory", "64"], ready + ["finish"],
             ["dump binary memory /dev/null buffer buffer+67108864"]),
        Line("attach to 1,000 threads", ["wait", "1000"], [], ["attach PID"], attach=True),
        Line("info threads of 1,000", ["wait", "1000"], ["attach PID"], ["info threads"],
             attach=True),
        Line("symbols over the connection", ["loop", "10"], [], ["CONNECT", "info line main"],
             remote_symbols=True),
        Line("1,000 forks", ["forks", "1000"], ready, ["continue"]),
        Line("200 threads, 200 stops", ["threads", "200"],
             ready + ["break visit if $_thread == 0", "delete", "break visit"],
             ["continue"] * 200),
    ]


def measure(options, server, line, program):
    """@return seconds, or a text that says why there are none."""
    started = None
    words = [server]
    if line.attach:
        started = subprocess.Popen([program] + line.words, stdout=subprocess.PIPE,
                                   stdin=subprocess.DEVNULL)
        started.stdout.readline()
        words += ["--multi", "--once", ":0"]
    else:
        words += ["--once", ":0", program] + line.words
    # Not through a pipe: gdb reads slowly from one.
    served = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True)
    port = next((found.group(1) for text in served.stderr
                 if (found := re.search(r"Listening on port ([0-9]+)", text))), None)
    if port is None:
        return "the server did not listen"
    connect = "target %s localhost:%s" % ("extended-remote" if line.attach else "remote", port)
    script = ["set confirm off", "set pagination off", "set height 0",
              "set breakpoint pending off", "set debuginfod enabled off"]
    if line.remote_symbols:
        script += ["set sysroot target:"]
    else:
        script += ["set sysroot /", "file " + program]
    words = {"CONNECT": connect}
    if started is not None:
        words["attach PID"] = "attach %d" % started.pid
    if "CONNECT" not in line.timed:
        script.append(connect)
    script += [words.get(command, command) for command in line.before]
    script.append(CLOCK)
    script += [words.get(command, command) for command in line.timed]
    script.append(CLOCK)
    script.append("detach" if line.attach else "kill")
    with tempfile.NamedTemporaryFile("w", suffix=".gdb") as file:
        file.write("\n".join(script) + "\n")
        file.flush()
        try:
            done = subprocess.run([options.gdb, "-nx", "-q", "-batch", "-x", file.name],
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, timeout=TIME_LIMIT,
                                  check=False)
        except subprocess.TimeoutExpired:
            return "not done in %d s" % TIME_LIMIT
        finally:
            for process in filter(None, (started, served)):
                process.kill()
                process.wait()
            served.stderr.close()
    times = re.findall(r"^TIME ([0-9.]+)$", done.stdout, re.MULTILINE)
    if len(times) != 2:
        return done.stdout.strip()[-400:] or "gdb ended with status %d" % done.returncode
    return float(times[1]) - float(times[0])


def show(seconds):
    return "%8.1f ms" % (seconds * 1000)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("build")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--only", default="", help="lines whose names contain one of these words")
    parser.add_argument("--gdbserver", default=shutil.which("gdbserver"))
    parser.add_argument("--gdb", default="gdb")
    options = parser.parse_args()
    if not options.gdbserver:
        sys.exit("server.py: gdbserver is not installed")
    ours = os.path.join(os.path.abspath(options.build), "backtrail-gdbserver")
    wanted = [word for word in options.only.split(",") if word]
    print("%-34s %11s %11s %8s" % ("medians of %d" % options.runs, "gdbserver", "backtrail", "ratio"))
    with tempfile.TemporaryDirectory(prefix="backtrail-bench.") as folder:
        program = os.path.join(folder, "server_program")
        subprocess.run(["g++", "-g", "-O0", "-pthread", "-o", program, SOURCE], check=True)
        failed = False
        for line in lines():
            if wanted and not any(word in line.name for word in wanted):
                continue
            times = {options.gdbserver: [], ours: []}
            for _ in range(options.runs):
                for server, seconds in times.items():
                    seconds.append(measure(options, server, line, program))
            faults = [text for found in times.values() for text in found if isinstance(text, str)]
            if faults:
                failed = True
                print("%-34s not measured: %s" % (line.name, faults[0]))
                continue
            theirs, own = (statistics.median(found) for found in times.values())
            print("%-34s %s %s %7.2fx" % (line.name, show(theirs), show(own), theirs / own), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
