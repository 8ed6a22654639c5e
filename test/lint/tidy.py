#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs clang-tidy over files, side by side, and says what took long.

usage: tidy.py BUILD_DIR FILE...

What clang-tidy reads of a file is mostly the headers of libraries. Files with equal options are
therefore checked several at a time, as one text; those whose internal names collide go to different
texts, and one that does not compile is split.

A plugin (tidy_scope.cpp) keeps the checks away from the declarations of libraries.

A header is checked through the translation unit that checks whether it compiles alone (clang
preset). Files that the build does not compile are left out.
"""

import concurrent.futures
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "cmake"))
from source_groups import groups  # noqa: E402

TIDY = os.environ.get("CLANG_TIDY", "clang-tidy-14")
FILES_AT_ONCE = 32
# States after which the path-sensitive checks give a function up. With clang's own limit (225,000)
# the few functions that reach it take three quarters of the time.
MAX_STATES = 10000


class Unit:
    """A file of ours with how it is compiled."""

    def __init__(self, entry):
        self.path = os.path.realpath(os.path.join(entry["directory"], entry["file"]))
        self.directory = entry["directory"]
        words = entry.get("arguments") or shlex.split(entry["command"])
        self.options = []
        self.places = []  # Definitions and folders of headers.
        rest = iter(words)
        for word in rest:
            if word == "-o":
                next(rest)
            elif word == "-Xclang":
                # Of precompiled headers: ["-Xclang", "-include", "-Xclang", path].
                next(rest), next(rest), next(rest)
            elif word == "-isystem":
                self.places.append("-isystem" + next(rest))
            elif word.startswith(("-D", "-I")):
                self.places.append(word)
            elif (word not in ("-c", "-Winvalid-pch") and
                  os.path.realpath(os.path.join(self.directory, word)) != self.path):
                self.options.append(word)
        self.size = os.path.getsize(self.path)

    def is_test(self):
        return os.path.relpath(self.path).startswith("test/")

    def kind(self):
        """What files of one text have in common. Tests may differ in definitions, which are paths,
        and in optimisation."""
        if not self.is_test():
            return (False, self.directory, tuple(self.options), tuple(self.places))
        options = [word for word in self.options if not re.match(r"-[Og]", word)]
        return (True, self.directory, tuple(options), ())


def build_scope(build):
    """Builds the plugin for the version of clang-tidy. @return its path."""
    version = re.search(r"version (\d+)", subprocess.run(
        [TIDY, "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout).group(1)
    include = "/usr/lib/llvm-%s/include" % version
    plugin = os.path.join(build, "tidy_scope.so")
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tidy_scope.cpp")
    # LLVM has no run-time type information.
    subprocess.run(["clang++-" + version, "-std=c++17", "-fno-rtti", "-fPIC", "-shared", "-isystem",
                    include, source, "-o", plugin], check=True)
    return plugin


def sees_own_files(build, plugin):
    """@return whether clang-tidy finds what is wrong in a file of ours."""
    with tempfile.TemporaryDirectory(prefix="tidy.", dir=build) as folder:
        source = os.path.join(folder, "wrong.cpp")
        with open(source, "w", encoding="utf-8") as out:
            out.write("#include <string>\nnamespace some {\nclass Thing;\n}\n"
                      "namespace own {\nclass wrong_name {};\nusing some::Thing;\n}\n")
        said = subprocess.run([TIDY, "-quiet", "-load=" + plugin, source, "--", "-std=c++20"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              check=False).stdout
    return "readability-identifier-naming" in said and "misc-unused-using-decls" in said


def run_tidy(members, folder, plugin):
    """@return status and what clang-tidy said."""
    # Inside the build folder: clang-tidy looks for its configuration in the folders above. One text,
    # for the path-sensitive checks pass over what is included.
    source = os.path.join(folder, "unit.cpp")
    begins, line = [], 1
    with open(source, "w", encoding="utf-8") as out:
        for unit in members:
            with open(unit.path, encoding="utf-8") as text:
                lines = text.readlines()
            begins.append((line, unit.path))
            out.writelines(lines)
            line += len(lines)
    places = {}  # Definitions by name: tests define the same, each those that it needs.
    for unit in members:
        for word in unit.places + ["-I" + os.path.dirname(unit.path)]:
            places.setdefault(word.split("=")[0], word)
    options = members[0].options[:1] + list(places.values()) + members[0].options[1:]
    entry = {"directory": members[0].directory, "file": source,
             "arguments": options + ["-c", source]}
    with open(os.path.join(folder, "compile_commands.json"), "w", encoding="utf-8") as database:
        json.dump([entry], database)
    command = [TIDY, "-quiet", "-load=" + plugin, "-p", folder]
    # What shadows what is the compilers' to say: files in one text share a namespace.
    for word in ("-Wno-shadow", "-Xclang", "-analyzer-config", "-Xclang",
                 "max-nodes=%d" % MAX_STATES):
        command.append("--extra-arg=" + word)
    # The slow half of the checks is for the product; in tests it sees little but GoogleTest.
    if members[0].is_test():
        command.append("--checks=-clang-analyzer-*,-bugprone-*,bugprone-use-after-move")
    done = subprocess.run(command + [source], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, check=False)
    output = done.stdout.strip()
    if done.returncode and not output:
        output = done.stderr.strip()

    def original(match):
        number = int(match.group(1))
        begin, path = max(place for place in begins if place[0] <= number)
        return "%s:%d:" % (os.path.relpath(path), number - begin + 1)

    return done.returncode, re.sub(re.escape(source) + r":(\d+):", original, output)


def check(build, plugin, members):
    """@return (paths, status, output, seconds) of each translation unit that it took."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="tidy.", dir=build) as folder:
        status, output = run_tidy(members, folder, plugin)
    if "clang-diagnostic-error" in output and len(members) > 1:
        half = len(members) // 2
        return check(build, plugin, members[:half]) + check(build, plugin, members[half:])
    paths = [os.path.relpath(unit.path) for unit in members]
    return [(paths, status, output, time.monotonic() - start)]


def header_units(build, compiled):
    """@return the path of the translation unit that checks each header."""
    units = {}
    folder = os.path.join(build, "header_checks", "")
    for path in filter(lambda path: path.startswith(folder), compiled):
        with open(path, encoding="utf-8") as text:
            for header in re.findall(r'^#include "([^"]+)"', text.read(), re.MULTILINE):
                units[header] = path
    return units


def compiled_units(build, files):
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as database:
        compiled = {unit.path: unit for unit in map(Unit, json.load(database))}
    by_header = header_units(build, compiled)
    units, skipped = {}, []
    for name in files:
        path = by_header.get(name, "") if name.endswith(".hpp") else os.path.realpath(name)
        if path in compiled:
            units[path] = compiled[path]
        else:
            skipped.append(name)
    return list(units.values()), skipped


def main():
    build, files = os.path.realpath(sys.argv[1]), sys.argv[2:]
    units, skipped = compiled_units(build, files)
    # Big ones first: the last job to begin should be a short one.
    work = sorted(groups([(unit.kind(), unit.path, unit) for unit in units], FILES_AT_ONCE),
                  key=lambda members: -sum(unit.size for unit in members))
    start, failed, times = time.monotonic(), 0, []
    plugin = build_scope(build)
    if not sees_own_files(build, plugin):
        sys.exit("tidy: clang-tidy overlooks what is wrong in our own files; see tidy_scope.cpp")
    jobs = int(os.environ.get("TIDY_JOBS") or len(os.sched_getaffinity(0)))
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for results in pool.map(lambda members: check(build, plugin, members), work):
            for paths, status, output, seconds in results:
                times.append((seconds, " ".join(paths)))
                if status or output:
                    print(output, flush=True)
                failed += status != 0
    for seconds, paths in sorted(times, reverse=True)[:5]:
        print("tidy: %5.1f s  %s" % (seconds, paths))
    if skipped:
        print("tidy: not compiled, left out: %s" % " ".join(skipped))
    print("tidy: %d files in %d units, %d units failed, %.0f s" %
          (len(units), len(times), failed, time.monotonic() - start))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
