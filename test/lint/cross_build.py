#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles what must not depend on the CPU for aarch64, where a cross compiler is installed.

usage: cross_build.py ROOT      exit status 1 and the compiler's words for each file that fails

A file depends on the CPU if it includes a header of arch/cpu/ or of one CPU's folder, itself or
through others. Every other file of arch/base, decoder/, server/rsp and server/session must compile
with nothing but the libraries' headers, which are the host's.
"""

import concurrent.futures
import os
import re
import shutil
import subprocess
import sys

from source_files import read, source_files

COMPILERS = ("aarch64-linux-gnu-g++", "aarch64-linux-gnu-g++-12")
FOLDERS = ("arch/base", "decoder", "server/rsp", "server/session")
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
ONE_CPU = re.compile(r"^arch/(cpu|x86)/")
# fmt and spdlog, compiled into their users; their headers are written for the host's build.
LEFT_OUT = ("arch/base/compiled_fmt.cpp", "arch/base/compiled_spdlog.cpp")
# Each is set by CMake.
DEFINED = ("FMT_SHARED", 'BT_VERSION="0"', 'BT_LIBIPT="libipt.so"')
# As CMake finds them: on Debian, demangle.h is in a folder of its own.
HOST_HEADERS = ("/usr/include", "/usr/include/x86_64-linux-gnu", "/usr/include/libiberty")
# Most files may come to depend on the CPU without a word; fewer than this is a check of nothing.
LEAST_FILES = 70


class Includes:
    """Which files include what, through others, too."""

    def __init__(self, root):
        self.root = root
        self.known = {}

    def of(self, path):
        if path not in self.known:
            self.known[path] = set()
            there = os.path.isfile(os.path.join(self.root, path))
            direct = set(INCLUDE.findall(read(self.root, path))) if there else set()
            self.known[path] = direct.union(*(self.of(each) for each in direct))
        return self.known[path]

    def depends_on_cpu(self, path):
        return any(ONE_CPU.match(each) for each in self.of(path))


def compile_one(compiler, root, path):
    command = [compiler, "-std=c++20", "-fsyntax-only", "-I" + root]
    command += ["-D" + each for each in DEFINED]
    for folder in HOST_HEADERS:
        command += ["-idirafter", folder]
    done = subprocess.run(command + [os.path.join(root, path)], capture_output=True, text=True,
                          check=False)
    return done.returncode, done.stderr


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else "."
    compiler = next(filter(None, map(shutil.which, COMPILERS)), None)
    if compiler is None:
        print("cross: skipped, there is no %s (Debian: g++-aarch64-linux-gnu)" % COMPILERS[0])
        return 0
    includes = Includes(root)
    files = [path for path in source_files(root, FOLDERS, ".cpp")
             if path not in LEFT_OUT and not includes.depends_on_cpu(path)]
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for status, words in pool.map(lambda path: compile_one(compiler, root, path), files):
            if status:
                print(words.rstrip())
            failed += status != 0
    print("cross: %d files for aarch64, %d failed" % (len(files), failed))
    if len(files) < LEAST_FILES:
        print("cross: at least %d files should not depend on the CPU" % LEAST_FILES)
    return 1 if failed or len(files) < LEAST_FILES else 0


if __name__ == "__main__":
    sys.exit(main())
