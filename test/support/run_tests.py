# SPDX-License-Identifier: Apache-2.0
"""Runs the test cases of a script for CTest, which sees one test: tells by name what was skipped, and
ends with 77 (SKIP_RETURN_CODE) if nothing was tested. `./dev test` lists these lines.
"""

import sys
import unittest

SKIPPED = 77


class Result(unittest.TextTestResult):
    """Counts the tests that passed: `testsRun` counts skipped ones, by versions of Python."""

    passed = 0

    def addSuccess(self, test):
        super().addSuccess(test)
        self.passed += 1


def main():
    runner = unittest.TextTestRunner(resultclass=Result)
    result = unittest.main(argv=sys.argv[:1], testRunner=runner, exit=False).result
    for test, reason in result.skipped:
        print("Skipped: %s: %s" % (test.id().removeprefix("__main__."), reason))
    if not result.wasSuccessful():
        sys.exit(1)
    sys.exit(0 if result.passed else SKIPPED)
