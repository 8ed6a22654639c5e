#!/usr/bin/env python3
"""Runs clang-tidy over files, side by side, and says what took long.

usage: tidy.py BUILD_DIR FILE...

A header is checked through the translation unit that includes nothing else (the clang preset makes
one a header). Files that the build does not compile are left out.
"""

import concurrent.futures
import json
import os
import subprocess
import sys
import time

TIDY = os.environ.get("CLANG_TIDY", "clang-tidy-14")


def translation_units(build, files):
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as database:
        compiled = {os.path.realpath(entry["file"]) for entry in json.load(database)}
    units, skipped = [], []
    for name in files:
        if name.endswith(".hpp"):
            generated = name.replace("/", "__") + ".cpp"
            unit = os.path.realpath(os.path.join(build, "header_checks", generated))
        else:
            unit = os.path.realpath(name)
        (units if unit in compiled else skipped).append(unit if unit in compiled else name)
    return units, skipped


def check(build, unit):
    start = time.monotonic()
    command = [TIDY, "-quiet", "-p", build]
    # The slow half of the checks is for the product; in tests it sees little but GoogleTest.
    if os.path.relpath(unit).startswith("test/"):
        command.append("--checks=-clang-analyzer-*,-bugprone-*,bugprone-use-after-move")
    done = subprocess.run(command + [unit], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, check=False)
    output = done.stdout.strip()
    if done.returncode and not output:
        output = done.stderr.strip()
    return unit, done.returncode, output, time.monotonic() - start


def main():
    build, files = sys.argv[1], sys.argv[2:]
    units, skipped = translation_units(build, files)
    # Big ones first: the last job to begin should be a short one.
    units.sort(key=lambda unit: -os.path.getsize(unit))
    start, failed, times = time.monotonic(), 0, []
    jobs = int(os.environ.get("TIDY_JOBS") or len(os.sched_getaffinity(0)))
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for unit, status, output, seconds in pool.map(lambda u: check(build, u), units):
            times.append((seconds, os.path.relpath(unit)))
            if status or output:
                print(output, flush=True)
            failed += status != 0
    for seconds, unit in sorted(times, reverse=True)[:5]:
        print("tidy: %5.1f s  %s" % (seconds, unit))
    if skipped:
        print("tidy: not compiled, left out: %s" % " ".join(skipped))
    print("tidy: %d files, %d failed, %.0f s" % (len(units), failed, time.monotonic() - start))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
