#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints what a person wants to know of ctest's JUnit report: skips, failures, and counts.

Tests are counted as GoogleTest counts them if a binary of them is one test of ctest's.
"""
import re
import sys
import xml.etree.ElementTree as xml

MOST_LINES, MOST_COLUMNS = 30, 400


class Report:
    def __init__(self, root):
        self.passed = self.failed = 0
        self.skipped, self.skipped_in_part, self.failures = [], [], []
        for case in root.iter("testcase"):
            self.add(case.get("name"), case.get("status"), case.findtext("system-out") or "")

    def add(self, name, status, output):
        failed = status == "fail"
        if failed:
            self.failures.append((name, self.said_last(output)))
        ran = re.search(r"^\[=+\] (\d+) tests? from \d+ test suites? ran\.", output, re.MULTILINE)
        if ran and int(ran.group(1)) > 1:
            self.add_binary(output, failed)
        elif failed:
            self.failed += 1
        elif status in ("notrun", "disabled"):
            self.skipped.append((name, self.reasons(output)))
        else:
            self.passed += 1
            self.skipped_in_part += [(name, part) for part in self.parts(output)]

    def add_binary(self, output, failed):
        """Adds all tests of a binary, which may fail at its end although they passed."""
        results = re.findall(r"^\[  (     OK|SKIPPED|FAILED ) \] (\S+)(?=.* \(\d+ ms\))", output, re.MULTILINE)
        kinds = [kind.strip() for kind, _ in results]
        self.passed += kinds.count("OK")
        self.failed += max(kinds.count("FAILED"), int(failed))
        reasons = iter(re.findall(r": Skipped\n(.*)", output))
        for kind, test in results:
            if kind.strip() == "SKIPPED":
                self.skipped.append((test, [next(reasons, "")]))

    @staticmethod
    def parts(output):
        return re.findall(r"^Skipped: (.+)", output, re.MULTILINE)

    def reasons(self, output):
        """GoogleTest's words; of a script its lines of skips, or the only one it prints."""
        return re.findall(r": Skipped\n(.*)", output)[:1] or self.parts(output) or output.split("\n")[:1]

    @staticmethod
    def said_last(output):
        lines = output.rstrip().split("\n")
        begins = [at for at, line in enumerate(lines) if line.endswith(": Failure")]
        return lines[begins[0]:][:MOST_LINES] if begins else lines[-MOST_LINES:]

    def write(self, out):
        skipped = [(name, reason.strip()) for name, reasons in self.skipped for reason in reasons]
        for title, tests in (("skipped", skipped), ("skipped in part", self.skipped_in_part)):
            if tests:
                print("\n%s:" % title, file=out)
            for name, reason in tests:
                print("  %s: %s" % (name, reason) if reason else "  " + name, file=out)
        for name, lines in self.failures:
            print("\nfailed: %s" % name, file=out)
            for line in lines:
                print("  " + line[:MOST_COLUMNS], file=out)
        print("\n%d passed, %d failed, %d skipped" % (self.passed, self.failed, len(self.skipped)), file=out)


def main():
    Report(xml.parse(sys.argv[1]).getroot()).write(sys.stdout)


if __name__ == "__main__":
    main()
