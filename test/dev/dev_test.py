#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""./dev calls the right programs. It runs in a folder of its own, with stubs for what it calls."""

import os
import shutil
import subprocess
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# Adds its name and arguments to $CALLS.
RECORDS_ITSELF = '#!/bin/sh\necho "${0##*/} $*" >>"$CALLS"\n'
# The packages that are installed are all that it is asked for.
HAS_EVERYTHING = "#!/bin/sh\nprintf 'install ok installed'\n"


class Dev(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        shutil.copy(os.path.join(ROOT, "dev"), self.folder)
        self.calls = os.path.join(self.folder, "calls")
        for name in ("cmake", "ctest", "apt-get"):
            self.stub("bin/" + name, RECORDS_ITSELF)
        self.stub("bin/dpkg-query", HAS_EVERYTHING)

    def stub(self, name, text):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, 0o755)

    def dev(self, *arguments):
        """Runs ./dev; returns its result and the calls of stubs, one a line."""
        path = os.path.join(self.folder, "bin") + ":/usr/bin:/bin"
        done = subprocess.run([os.path.join(self.folder, "dev"), *arguments], check=False,
                              env={"PATH": path, "CALLS": self.calls}, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True)
        calls = ""
        if os.path.exists(self.calls):
            with open(self.calls, encoding="utf-8") as file:
                calls = file.read()
        return done, calls

    def test_demo_builds_only_the_program(self):
        self.stub("test/demo/run", RECORDS_ITSELF)
        done, calls = self.dev("demo")
        self.assertEqual(done.returncode, 0, done)
        self.assertIn("cmake --build --preset release --target backtrail\n", calls)
        self.assertEqual(calls.count("--build"), 1)
        self.assertIn("run build/release\n", calls)

    def test_build_builds_everything(self):
        done, calls = self.dev("build")
        self.assertEqual(done.returncode, 0, done)
        self.assertIn("cmake --build --preset release\n", calls)


if __name__ == "__main__":
    unittest.main()
