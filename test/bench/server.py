#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures what a person waits for at gdb's prompt, with Backtrail and with gdbserver.

usage: server.py BUILD [--runs N] [--only NAME,...] [--gdbserver PROGRAM] [--gdb PROGRAM]

Every line is a gdb session of its own, with each server in turns. gdb takes the time itself, from
before the command to after it, so that starts are not counted. Prints medians and their ratio: 2.0
means that gdbserver takes twice as long.

gdb's own work is in these times. The columns "CPU" have the server's processor time meanwhile, which
other programs on the machine hardly change. Further sessions of the same kind run through a relay,
which takes the time from each packet to its answer: what the server takes, with the program and the
kernel. Its sums are in the columns "alone".
"""
import argparse
import os
import re
import select
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.join(HERE, "server_program.cpp")
TIME_LIMIT = 60

# gdb runs it before and after what is measured; some gdbs have no Python.
CLOCK = "shell echo TIME $(date +%s.%N) $(cut -d' ' -f1 /proc/SERVER/schedstat)"


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


class Relay(threading.Thread):
    """Stands between gdb and a server for one connection, and notes when each packet was passed on to the
    server and when its answer was there."""

    PACKET = re.compile(rb"\$[^#]*#..", re.DOTALL)

    def __init__(self, port):
        super().__init__(daemon=True)
        self.server_port = port
        self.listener = socket.create_server(("localhost", 0))
        self.port = self.listener.getsockname()[1]
        self.answered = []  # (when it was sent, seconds until the answer)
        self.start()

    def run(self):
        with self.listener, self.listener.accept()[0] as client, \
                socket.create_connection(("localhost", self.server_port)) as server:
            for end in client, server:
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.pass_on(client, server)

    def pass_on(self, client, server):
        asked, sent, answer = b"", None, b""
        poll = select.poll()
        poll.register(client, select.POLLIN)
        poll.register(server, select.POLLIN)
        while True:
            for fd, _ in poll.poll():
                if fd == client.fileno():
                    data = client.recv(1 << 20)
                    asked += data
                    whole = self.PACKET.search(asked)
                    if whole:
                        asked, answer, sent = asked[whole.end():], b"", time.time()
                    server.sendall(data)
                else:
                    data = server.recv(1 << 20)
                    now = time.time()
                    if sent is not None:
                        answer += data
                        if self.PACKET.search(answer):
                            self.answered.append((sent, now - sent))
                            sent = None
                    client.sendall(data)
                if not data:
                    return

    def seconds(self, begin, end):
        return sum(took for sent, took in self.answered if begin <= sent <= end)


def measure(options, server, line, program, alone=False):
    """@return seconds and the server's processor time, or a text that says why there are none. `alone`: the
    seconds between packets and their answers."""
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
    relay = Relay(int(port)) if alone else None
    if relay:
        port = relay.port
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
    clock = CLOCK.replace("SERVER", str(served.pid))
    script.append(clock)
    script += [words.get(command, command) for command in line.timed]
    script.append(clock)
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
    times = re.findall(r"^TIME ([0-9.]+) ([0-9]+)$", done.stdout, re.MULTILINE)
    if len(times) != 2:
        return done.stdout.strip()[-400:] or "gdb ended with status %d" % done.returncode
    begin, end = (float(wall) for wall, _ in times)
    cpu = (int(times[1][1]) - int(times[0][1])) / 1e9
    return (relay.seconds(begin, end) if relay else end - begin), cpu


def compare(theirs, own):
    return "%8.1f ms %8.1f ms %7.2fx" % (theirs * 1000, own * 1000, theirs / own)


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
    print("%-34s" % ("medians of %d" % options.runs) +
          "  ".join("%11s %11s %8s" % ("gdbserver", "backtrail", kind) for kind in ("ratio", "CPU", "alone")))
    with tempfile.TemporaryDirectory(prefix="backtrail-bench.") as folder:
        program = os.path.join(folder, "server_program")
        subprocess.run(["g++", "-g", "-O0", "-pthread", "-o", program, SOURCE], check=True)
        failed = False
        for line in lines():
            if wanted and not any(word in line.name for word in wanted):
                continue
            times = {(server, alone): [] for alone in (False, True)
                     for server in (options.gdbserver, ours)}
            for _ in range(options.runs):
                for (server, alone), seconds in times.items():
                    seconds.append(measure(options, server, line, program, alone))
            faults = [text for found in times.values() for text in found if isinstance(text, str)]
            if faults:
                failed = True
                print("%-34s not measured: %s" % (line.name, faults[0]))
                continue
            columns = [[statistics.median(values) for values in zip(*found)] for found in times.values()]
            theirs, own, theirs_alone, own_alone = columns
            print("%-34s %s  %s  %s" % (line.name, compare(theirs[0], own[0]), compare(theirs[1], own[1]),
                                        compare(theirs_alone[0], own_alone[0])), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
