#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures real programs under `backtrail record` and similar tools: wall time relative to native.

usage: slowdown.py BUILD [--runs N] [--peer-runs N] [--only NAME,...] [--vs NAME,...] [--set steady|short|trees|extra]

Every workload runs natively and under each tool, in turns, so that changes of the machine's speed
affect all of them. Prints medians relative to native, whether output and exit status stayed the same,
and the geometric mean of the workloads where they did. `first` is `record` with an empty persistent
cache; `record` runs after it. Slow tools run once by default; everything takes about a quarter of an
hour. gdb's `record full` is extrapolated: from the instructions that it executes in a second and the
number of instructions that `record` counted.
"""
import argparse
import hashlib
import math
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TIME_LIMIT = 120.0
PEERS = ("valgrind", "qemu")
GDB_INSTRUCTIONS = 20000
MADE_FILES = 40

PYTHON = """
def primes(n):
    sieve = bytearray([1]) * n
    for i in range(2, int(n ** 0.5) + 1):
        if sieve[i]:
            for j in range(i * i, n, i):
                sieve[j] = 0
    return sum(sieve)
words = {}
for i in range(2000000):
    key = "w%d" % (i * 7919 % 5003)
    words[key] = words.get(key, 0) + i
print(primes(9000000), len(words), sum(words.values()))
"""
PERL = """
my %h; my $t = 0;
for my $i (1 .. 4500000) { my $k = "k" . ($i * 31 % 4001); $h{$k} += $i; $t += length($k) if $k =~ /7[0-3]/; }
print scalar(keys %h), " $t\\n";
"""
SQL = """
create table t(a integer, b text);
with recursive c(i) as (select 1 union all select i + 1 from c where i < 300000)
  insert into t select i * 7919 % 100003, 'row ' || i from c;
create index x on t(a);
select count(*), sum(a), max(b) from t;
select a % 10, count(*), max(length(b)) from t group by 1 order by 2 desc, 1;
select count(*) from t t1 join t t2 on t1.a = t2.a where t1.b < t2.b;
"""
LIBRARY = """
#include <iostream>
#include <map>
#include <regex>
#include <string>
int main(int argc, char** argv) {
  std::map<std::string, int> seen;
  const std::regex word{"[a-z]+([0-9]*)"};
  for (int i = 0; i < argc; ++i) seen[std::regex_replace(argv[i], word, "$1")] += i;
  for (const auto& [key, value] : seen) std::cout << key << value;
}
"""
MAKEFILE = """
OBJECTS = $(patsubst %.c,%.o,$(wildcard *.c))
all: $(OBJECTS)
\tcat $^ | cksum
%.o: %.c
\t$(CC) -O1 -c -o $@ $<
"""
MADE = """
#include <stdio.h>
#include <stdlib.h>
int part%d(int count) {
  int sum = 0;
  for (int i = 0; i < count; i++) sum += i * %d;
  printf("%%d\\n", sum);
  return sum;
}
"""
NODE = """
let m = new Map(), t = 0;
for (let i = 0; i < 3000000; i++) { const k = (i * 7919) % 5003; m.set(k, (m.get(k) || 0) + i); t += String(k).length; }
console.log(m.size, t);
"""
JAVA = """
import java.util.*;
public class Prog {
  interface Shape { double next(double x); }
  public static void main(String[] arguments) {
    Shape[] shapes = {x -> x * 1.01 + 1, x -> x > 1e6 ? x / 3 : x + 2, x -> x * 0.99 - 1};
    long sum = 0;
    double x = 1;
    for (int round = 0; round < 1200; round++) {
      Map<String, Integer> words = new HashMap<>();
      for (int i = 0; i < 20000; i++) words.merge("w" + i * 31 % 5000, i, Integer::sum);
      List<Integer> values = new ArrayList<>(words.values());
      Collections.sort(values);
      sum += values.get(values.size() / 2);
      for (int i = 0; i < 40000; i++) x = shapes[i % 3].next(x);
    }
    System.out.println(sum + " " + x);
  }
}
"""


class Scratch:
    """Inputs, made once."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="backtrail-bench.")
        state = 12345
        words = []
        for _ in range(3600000):
            state = (state * 1103515245 + 12345) & 0x7FFFFFFF
            words.append("%x" % (state >> 14 & 0xFFF))
        self.write("text", " ".join(words))
        self.write("empty.c", "")
        self.write("library.cpp", LIBRARY)
        self.write("prog.py", PYTHON)
        self.write("prog.pl", PERL)
        self.write("prog.sql", SQL)
        self.write("prog.js", NODE)
        shutil.copy(os.path.join(HERE, "shapes.cpp"), self.folder)
        subprocess.run(["g++", "-O2", "-o", self.path("shapes"), self.path("shapes.cpp")], check=True)
        os.mkdir(self.path("project"))
        self.write("project/Makefile", MAKEFILE)
        for part in range(MADE_FILES):
            self.write("project/part%d.c" % part, MADE % (part, part))
        self.write("Prog.java", JAVA)
        if full("javac"):
            subprocess.run([full("javac"), "-d", self.folder, self.path("Prog.java")], check=True)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="ascii") as out:
            out.write(text)


def full(program):
    return shutil.which(program, path="/usr/local/bin:/usr/bin:/bin")


def compiler_proper():
    """cc1plus itself: g++ only starts it."""
    found = subprocess.run(["g++", "-print-prog-name=cc1plus"], capture_output=True, text=True, check=True)
    return found.stdout.strip()


def workloads(scratch):
    text = scratch.path("text")
    sets = {
        "steady": [
            ("gzip", [full("gzip"), "-9c", text]),
            ("bzip2", [full("bzip2"), "-9c", text]),
            ("xz", [full("xz"), "-0c", "-T1", text]),
            ("python3", [full("python3"), "-S", scratch.path("prog.py")]),
            ("perl", [full("perl"), scratch.path("prog.pl")]),
            ("sqlite3", [full("sqlite3"), ":memory:", ".read " + scratch.path("prog.sql")]),
            ("cc1plus", [compiler_proper(), "-quiet", "-D_GNU_SOURCE", "-O2", "-std=c++17", "-o", "/dev/null", scratch.path("library.cpp")]),
            ("shapes", [scratch.path("shapes"), "60"]),
        ],
        "short": [
            ("true", ["/bin/true"]),
            ("sh, 20 x true", ["/bin/sh", "-c", "i=0; while [ $i -lt 20 ]; do /bin/true; i=$((i+1)); done"]),
            ("gcc empty.c", [full("gcc"), "-c", "-o", "/dev/null", scratch.path("empty.c")]),
            ("python3 pass", [full("python3"), "-c", "pass"]),
            ("git --version", [full("git"), "--version"]),
        ],
        "trees": [
            ("sh, 200 x true", ["/bin/sh", "-c", "i=0; while [ $i -lt 200 ]; do /bin/true; i=$((i+1)); done"]),
            ("make -j2, %d files" % MADE_FILES, [full("make"), "-sBj2", "-C", scratch.path("project")]),
        ],
        "extra": [
            ("xz, 2 threads", [full("xz"), "-0c", "-T2", "--block-size=4MiB", text]),
            ("node", [full("node"), scratch.path("prog.js")]),
            ("java", [full("javac") and full("java"), "-cp", scratch.folder, "Prog"]),
            ("java -version", [full("java"), "-version"]),
        ],
    }
    return {k: [w for w in v if w[1][0]] for k, v in sets.items()}


def once(prefix, command, scratch, environment=None):
    begin = time.monotonic()
    try:
        ran = subprocess.run(prefix + command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                             stdin=subprocess.DEVNULL, timeout=TIME_LIMIT, cwd=scratch.folder, env=environment)
    except subprocess.TimeoutExpired:
        return TIME_LIMIT, ("time-out", "")
    return time.monotonic() - begin, (ran.returncode, hashlib.sha1(ran.stdout).hexdigest())


def counted(backtrail, command, scratch):
    """(taken branches, instructions, log bytes, misses) as record counts them."""
    ran = subprocess.run([backtrail, "record", "--stats", "--"] + command, stdout=subprocess.DEVNULL,
                         stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, cwd=scratch.folder, check=False)
    text = ran.stderr.decode(errors="replace")

    def number(name):
        found = re.search(r"backtrail: %s +(\d+)" % name, text)
        return int(found.group(1)) if found else 0

    return [number(n) for n in ("branches taken", "instructions", "log bytes", "misses")]


def gdb_rate(command, scratch):
    """Instructions a second of gdb's `record full`."""
    script = ["set confirm off", "set pagination off", "set debuginfod enabled off",
              "set environment LD_BIND_NOW 1", "set record full stop-at-limit off",
              "set record full insn-number-max 0", "starti", "record full",
              "python import time; begin = time.monotonic()", "stepi %d" % GDB_INSTRUCTIONS,
              "python print('RATE', %d / (time.monotonic() - begin))" % GDB_INSTRUCTIONS]
    words = ["gdb", "-nx", "-batch"]
    for line in script:
        words += ["-ex", line]
    ran = subprocess.run(words + ["--args"] + command, capture_output=True, text=True, cwd=scratch.folder,
                         stdin=subprocess.DEVNULL, check=False, timeout=TIME_LIMIT)
    found = re.search(r"RATE ([0-9.]+)", ran.stdout)
    return float(found.group(1)) if found else float("nan")


def geometric_mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else float("nan")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--peer-runs", type=int, default=1, help="of " + " and ".join(PEERS))
    parser.add_argument("--only", default="")
    parser.add_argument("--set", default="steady,short,trees")
    parser.add_argument("--vs", default="first,record,valgrind,qemu,gdb")
    options = parser.parse_args()
    backtrail = os.path.abspath(os.path.join(options.build, "backtrail"))
    scratch = Scratch()
    kept = os.path.join(scratch.folder, "cache")
    environment = dict(os.environ, XDG_CACHE_HOME=kept)
    environment.pop("LD_PRELOAD", None)
    prefixes = {"native": [], "none": [backtrail, "record", "--source", "none", "--"],
                "first": [backtrail, "record", "--"], "record": [backtrail, "record", "--"],
                "valgrind": [full("valgrind"), "--tool=none", "-q", "--trace-children=yes"],
                "qemu": [full("qemu-x86_64")]}
    wanted = options.vs.split(",")
    shown = [v for v in wanted if v in prefixes and v != "native" and (not prefixes[v] or prefixes[v][0])]
    try:
        for group, rows in workloads(scratch).items():
            if group not in options.set.split(","):
                continue
            if options.only:
                rows = [r for r in rows if r[0] in options.only.split(",")]
            measure(group, rows, shown, prefixes, options, backtrail, scratch, environment, kept, "gdb" in wanted)
    finally:
        shutil.rmtree(scratch.folder, ignore_errors=True)


def measure(group, rows, shown, prefixes, options, backtrail, scratch, environment, kept, with_gdb):
    print("\n%s programs, wall time, median of %d runs (%s: of %d), times native"
          % (group, options.runs, ", ".join(PEERS), min(options.peer_runs, options.runs)))
    head = ["program", "native s"] + shown + (["gdb record full*"] if with_gdb else []) + ["bytes/branch", "misses"]
    print("| " + " | ".join(head) + " |")
    print("|" + "---|" * len(head))
    ratios = {name: [] for name in shown}
    for name, command in rows:
        times = {v: [] for v in ["native"] + shown}
        results = {}
        for turn in range(options.runs):
            for v in ["native"] + shown:
                if v in PEERS and turn >= options.peer_runs:
                    continue
                if results.get(v, ("", ""))[0] == "time-out":
                    continue
                if v == "first":
                    shutil.rmtree(kept, ignore_errors=True)
                spent, result = once(prefixes[v], command, scratch, environment)
                times[v].append(spent)
                results.setdefault(v, result)
        native = statistics.median(times["native"])
        cells = [name, "%.3f" % native]
        for v in shown:
            ratio = statistics.median(times[v]) / native
            same = results[v] == results["native"]
            cells.append("%.2f%s" % (ratio, "" if same else " DIFFERS"))
            if same:
                ratios[v].append(ratio)
        branches, instructions, log_bytes, misses = counted(backtrail, command, scratch)
        if with_gdb:
            cells.append("%.0f" % (instructions / gdb_rate(command, scratch) / native))
        cells += ["%.2f" % (log_bytes / branches if branches else 0), "%d" % misses]
        print("| " + " | ".join(cells) + " |", flush=True)
    cells = ["geometric mean", ""] + ["%.2f" % geometric_mean(ratios[v]) for v in shown]
    print("| " + " | ".join(cells) + " |" + (" |" if with_gdb else "") + " | |")
    if with_gdb:
        print("\\* extrapolated from its first %d instructions" % GDB_INSTRUCTIONS)
    sys.stdout.flush()


if __name__ == "__main__":
    main()
