#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""./dev calls the right programs. It runs in a folder of its own, with stubs for what it calls."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import run_tests  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# Adds its name and arguments to $CALLS.
RECORDS_ITSELF = '#!/bin/sh\necho "${0##*/} $*" >>"$CALLS"\n'
# The last three read $OFFERED and $INSTALLED, with lines of a package and its version.
APT_GET = RECORDS_ITSELF + """
for word; do
  case $word in
    update) [ ! -f "$OFFERED.new" ] || mv "$OFFERED.new" "$OFFERED" ;;
  esac
done
"""
APT_CACHE = """#!/bin/sh
case $1 in
  policy)
    word=Installationskandidat
    [ "${LC_ALL:-}" != C ] || word=Candidate
    sed -n "s/^$2 /  $word: /p" "$OFFERED"
    ;;
  pkgnames) sed -n "s/^\\($2[^ ]*\\) .*/\\1/p" "$OFFERED" ;;
esac
"""
DPKG_QUERY = """#!/bin/sh
for package; do :; done
sed -n "s/^$package /ii /p" "$INSTALLED"
"""

WITHOUT_BOOST = """\
g++ 4:12.2.0-3
cmake 3.25.1-1
libfmt-dev 9.1.0+ds1-2
libspdlog-dev 1:1.10.0+ds-0.4
libcli11-dev 2.1.2+ds-1
libzydis-dev 4.0.0-1
libzstd-dev 1.5.4+dfsg2-5
libdw-dev 0.188-2.1
libarchive-dev 3.6.2-1
gdb 13.1-3
""" + "".join(name + " 1\n" for name in """ninja-build pkg-config libexpected-dev libpugixml-dev
    libcapstone-dev libacl1-dev libbz2-dev liblzma-dev libiberty-dev zlib1g-dev libipt-dev
    libgtest-dev libgmock-dev gdbserver python3 python3-yaml gcc-multilib procps""".split())
FOR_PROGRAM_TESTS = "".join(name + " 1\n" for name in "dpkg-dev file man-db zsh fish rpm".split())
DEBIAN_12 = WITHOUT_BOOST + "libboost-dev 1.74.0.3\nlibboost1.74-dev 1.74.0\nlibboost1.81-dev 1.81.0\n"
DEBIAN_13 = WITHOUT_BOOST + "libboost-dev 1.83.0.2\nlibboost1.83-dev 1.83.0\nlibboost1.88-dev 1.88.0\n"
UBUNTU_22_04 = WITHOUT_BOOST + "libboost-dev 1.74.0.3\nlibboost1.74-dev 1.74.0\n"

# A report of CTest: a test of GoogleTest, for scripts that end with 77, and for one that skips a part.
REPORT = """<testsuite name="all"
\ttests="5"
\tfailures="0"
\tdisabled="0"
\tskipped="3"
>
<testcase name="Perf.Opens" status="notrun"><skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/>
<system-out>a_test.cpp:5: Skipped
perf is forbidden
</system-out></testcase>
<testcase name="ide" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/>
<system-out>sss
Skipped: Ide.test_a: gdb is too old
Skipped: Ide.test_b: gdb is too old
</system-out></testcase>
<testcase name="snippets" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/>
<system-out>no YAML parser
</system-out></testcase>
<testcase name="package" status="run"><system-out>..s
OK (skipped=1)
Skipped: Package.test_lintian: lintian is not installed
</system-out></testcase>
<testcase name="dev" status="run"><system-out>fine</system-out></testcase>
</testsuite>
"""
# A report of tests that failed: one of GoogleTest, and a script.
FAILED = """<testsuite name="all"
\ttests="2"
\tfailures="2"
\tdisabled="0"
\tskipped="0"
>
<testcase name="Page.Opens" status="fail"><failure message=""/>
<system-out>Running main()
a_test.cpp:5: Failure
Expected: (a) &lt; (b)
</system-out></testcase>
<testcase name="ide" status="fail"><failure message=""/>
<system-out>F
AssertionError: no answer
</system-out></testcase>
</testsuite>
"""
# A report of a binary of GoogleTest's, whose tests are counted.
BINARY = """<testsuite name="all">
<testcase name="unit_arch" status="fail"><failure message=""/>
<system-out>Running main()
[==========] Running 4 tests from 1 test suite.
[ RUN      ] Bytes.Load
[       OK ] Bytes.Load (0 ms)
[ RUN      ] Bytes.Pext
a_test.cpp:5: Skipped
this CPU has no PEXT
[  SKIPPED ] Bytes.Pext (0 ms)
[ RUN      ] Bytes.Store
a_test.cpp:9: Failure
Expected: (a) &lt; (b)
[  FAILED  ] Bytes.Store (1 ms)
[ RUN      ] Bytes/Sizes.Fit/0
[       OK ] Bytes/Sizes.Fit/0 (0 ms)
[==========] 4 tests from 1 test suite ran. (1 ms total)
[  PASSED  ] 2 tests.
[  SKIPPED ] 1 test, listed below:
[  SKIPPED ] Bytes.Pext
[  FAILED  ] 1 test, listed below:
[  FAILED  ] Bytes.Store
</system-out></testcase>
</testsuite>
"""
CTEST = RECORDS_ITSELF + """
while [ $# != 0 ]; do
  [ "$1" != --output-junit ] || cp "$REPORT" "$2"
  shift
done
"""


@unittest.skipUnless(shutil.which("dpkg"), "dpkg, which compares versions, is not installed")
class Dev(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        shutil.copy(os.path.join(ROOT, "dev"), self.folder)
        os.mkdir(os.path.join(self.folder, "test"))
        shutil.copy(os.path.join(ROOT, "test", "ctest_report.py"), os.path.join(self.folder, "test"))
        self.environment = {"PATH": os.path.join(self.folder, "bin") + ":/usr/bin:/bin"}
        for name in ("calls", "offered", "installed"):
            self.environment[name.upper()] = os.path.join(self.folder, name)
        for name in ("cmake", "ctest"):
            self.program("bin/" + name, RECORDS_ITSELF)
        # Root does not need it.
        self.program("bin/sudo", '#!/bin/sh\nexec "$@"\n')
        self.program("bin/apt-get", APT_GET)
        self.program("bin/apt-cache", APT_CACHE)
        self.program("bin/dpkg-query", DPKG_QUERY)
        self.file("calls", "")
        self.file("offered", DEBIAN_12)
        self.file("installed", DEBIAN_12)

    def file(self, name, text):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def program(self, name, text):
        os.chmod(self.file(name, text), 0o755)

    def dev(self, *arguments):
        """Runs ./dev; returns its result and the calls of stubs, one a line."""
        done = subprocess.run([os.path.join(self.folder, "dev"), *arguments], check=False,
                              env=self.environment, text=True, stdin=subprocess.DEVNULL,
                              capture_output=True)
        with open(self.environment["CALLS"], encoding="utf-8") as file:
            return done, file.read()

    def outcome(self, report, status=0):
        """Runs ./dev test, whose ctest writes this report; returns the result."""
        self.file("installed", DEBIAN_12 + FOR_PROGRAM_TESTS)
        self.environment["REPORT"] = self.file("report.xml", report)
        os.makedirs(os.path.join(self.folder, "build", "release"))
        self.program("bin/ctest", CTEST + "exit %d\n" % status)
        done, _ = self.dev("test")
        self.assertEqual(done.returncode != 0, status != 0, done)
        return done

    def installs(self):
        """Runs ./dev setup; returns the packages that it installs."""
        done, calls = self.dev("setup")
        self.assertEqual(done.returncode, 0, done)
        for line in calls.splitlines():
            if " install " in line:
                return line.split("--no-install-recommends ")[1].split()
        return []

    def test_demo_builds_only_the_program(self):
        self.program("test/demo/run", RECORDS_ITSELF)
        done, calls = self.dev("demo")
        self.assertEqual(done.returncode, 0, done)
        self.assertIn("cmake --build --preset release --target backtrail\n", calls)
        self.assertEqual(calls.count("--build"), 1)
        self.assertIn("run build/release\n", calls)

    def test_installs_what_only_tests_run_for_tests_alone(self):
        self.program("test/demo/run", RECORDS_ITSELF)
        self.file("offered", DEBIAN_12 + FOR_PROGRAM_TESTS)
        self.assertNotIn(" install ", self.dev("demo")[1])
        calls = self.dev("test")[1]
        self.assertIn("--no-install-recommends dpkg-dev file man-db zsh fish rpm\n", calls)

    def test_repeats_at_the_end_what_failed_tests_said(self):
        self.assertEqual(self.outcome(FAILED, status=8).stdout, """
failed: Page.Opens
  a_test.cpp:5: Failure
  Expected: (a) < (b)

failed: ide
  F
  AssertionError: no answer

0 passed, 2 failed, 0 skipped
""")

    def test_lists_what_tests_skipped(self):
        self.assertEqual(self.outcome(REPORT).stdout, """
skipped:
  Perf.Opens: perf is forbidden
  ide: Ide.test_a: gdb is too old
  ide: Ide.test_b: gdb is too old
  snippets: no YAML parser

skipped in part:
  package: Package.test_lintian: lintian is not installed

2 passed, 0 failed, 3 skipped
""")

    def test_counts_the_tests_of_a_binary(self):
        done = self.outcome(BINARY, status=8)
        self.assertIn("\nskipped:\n  Bytes.Pext: this CPU has no PEXT\n", done.stdout)
        self.assertIn("\nfailed: unit_arch\n  a_test.cpp:9: Failure\n  Expected: (a) < (b)\n", done.stdout)
        self.assertTrue(done.stdout.endswith("\n2 passed, 1 failed, 1 skipped\n"), done.stdout)

    def test_build_builds_everything(self):
        done, calls = self.dev("build")
        self.assertEqual(done.returncode, 0, done)
        self.assertIn("cmake --build --preset release\n", calls)
        self.assertNotIn("BT_WERROR", calls)

    def test_a_new_build_folder_compiles_several_files_at_a_time(self):
        self.assertIn("cmake --preset release -DBT_PRECOMPILED=ON -DBT_UNITE=ON\n", self.dev("build")[1])

    def test_a_build_folder_stays_as_it_was_configured(self):
        self.file("build/release/CMakeCache.txt", "")
        self.assertIn("cmake --preset release\n", self.dev("build")[1])
        self.environment["BT_UNITE"] = "OFF"
        self.assertIn("cmake --preset release -DBT_PRECOMPILED=OFF -DBT_UNITE=OFF\n", self.dev("build")[1])

    def test_a_compiler_cache_takes_precompiled_headers(self):
        self.program("bin/cmake", '#!/bin/sh\necho "$CMAKE_CXX_COMPILER_LAUNCHER $CCACHE_SLOPPINESS" >>"$CALLS"\n')
        self.program("bin/ccache", RECORDS_ITSELF)
        self.assertIn("ccache pch_defines,time_macros\n", self.dev("build")[1])
        self.file("calls", "")
        self.environment["CI"] = "true"
        self.assertNotIn("ccache", self.dev("build")[1])

    def test_warnings_are_errors_where_asked_for(self):
        self.environment["BT_WERROR"] = "ON"
        done, calls = self.dev("build")
        self.assertEqual(done.returncode, 0, done)
        self.assertIn("-DBT_WERROR=ON\n", calls)

    def test_installs_nothing_that_is_there(self):
        self.assertEqual(self.installs(), [])

    def test_takes_the_newest_boost_where_the_default_is_too_old(self):
        self.file("installed", WITHOUT_BOOST + "libboost1.74-dev 1.74.0\n")
        self.assertEqual(self.installs(), ["libboost1.81-dev"])

    def test_takes_the_default_boost_where_it_suffices(self):
        self.file("offered", DEBIAN_13)
        self.file("installed", WITHOUT_BOOST)
        self.assertEqual(self.installs(), ["libboost-dev"])

    def test_is_content_with_another_boost(self):
        self.file("offered", DEBIAN_13)
        self.file("installed", WITHOUT_BOOST + "libboost1.88-dev 1.88.0\n")
        self.assertEqual(self.installs(), [])

    def test_updates_a_package_that_is_too_old(self):
        self.file("installed", DEBIAN_12.replace("gdb 13.1-3", "gdb 12.1-1"))
        self.assertEqual(self.installs(), ["gdb"])

    def test_reads_the_package_lists_first_in_a_fresh_image(self):
        self.file("installed", "")
        self.file("offered", "")
        self.file("offered.new", DEBIAN_12)
        self.assertIn("libboost1.81-dev", self.installs())

    def test_says_what_is_too_old(self):
        self.file("offered", UBUNTU_22_04.replace("cmake 3.25.1-1", "cmake 3.22.1-1"))
        self.file("installed", "")
        done, calls = self.dev("setup")
        self.assertEqual(done.returncode, 1)
        self.assertIn("cmake, 3.25 or newer (here: 3.22.1-1)", done.stderr)
        self.assertIn("libboost-dev, 1.81 or newer (here: 1.74.0.3)", done.stderr)
        self.assertIn("portable archive", done.stderr)
        self.assertNotIn(" install ", calls)


if __name__ == "__main__":
    run_tests.main()
