#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The commands of backtrail-gdb.py in a real gdb.

extension_test.py SOURCE BACKTRAIL FOLDER [GDB]
"""

import os
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import run_tests  # noqa: E402

SOURCE, BACKTRAIL, FOLDER = sys.argv[1:4]
GDB = sys.argv[4] if len(sys.argv) > 4 else "gdb"


class Trail(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        shutil.rmtree(FOLDER, ignore_errors=True)
        os.makedirs(FOLDER + "/a b")
        cls.program = FOLDER + "/shop"
        subprocess.run([os.environ.get("CXX", "g++"), "-g", "-O0", "-fcf-protection=none",
                        SOURCE + "/test/demo/shop.cpp", "-o", cls.program], check=True)
        cls.core = FOLDER + "/a b/core"
        subprocess.run([BACKTRAIL, "record", "-o", cls.core, "--", cls.program], check=False,
                       stderr=subprocess.DEVNULL)

    def gdb(self, *commands):
        words = [GDB, "-nx", "-q", "-batch", "-iex", "set debuginfod enabled off", "-iex",
                 "set sysroot /", "-x", SOURCE + "/server/gdb/backtrail-gdb.py"]
        for command in commands:
            words += ["-ex", command]
        done = subprocess.run(words + [self.program], env=dict(os.environ, BACKTRAIL=BACKTRAIL), text=True,
                              check=False, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=100)
        return done.stdout

    def test_crash_opens_a_file_and_tells_how_it_ended(self):
        text = self.gdb("trail crash '%s'" % self.core, "reverse-stepi", "echo AGAIN\\n", "trail summary")
        first, second = text.split("AGAIN")
        self.assertIn("died of SIGILL", first)
        self.assertIn("shop.cpp", first)
        self.assertIn("died of SIGILL", second)

    def test_summary_of_a_recording(self):
        text = self.gdb("target remote | %s serve - %s" % (BACKTRAIL, self.program), "break main",
                        "continue", "record btrace", "continue", "trail summary 2", "kill")
        self.assertIn("Recorded ", text)
        self.assertIn("check_shelf()", text)
        self.assertNotIn("put_back", text)

    def test_errors(self):
        text = self.gdb("trail summary", "trail summary 0", "trail crash", "trail crash /nowhere")
        self.assertIn("nothing is recorded here", text)
        self.assertIn("Usage: trail summary", text)
        self.assertIn("Usage: trail crash FILE", text)
        self.assertIn("/nowhere: no such file", text)


if __name__ == "__main__":
    run_tests.main()
