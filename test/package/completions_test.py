#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Completions list what the program's help lists, in the shells that are installed.

completions_test.py SOURCE BACKTRAIL
"""

import os
import re
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import run_tests  # noqa: E402

SOURCE, PROGRAM = sys.argv[1:3]
FOLDER = os.path.join(SOURCE, "server", "completions")
COMMANDS = ("serve", "record", "replay", "report", "why", "info", "pack", "warm", "doctor", "decode",
            "tail")


def output(*words, **more):
    done = subprocess.run(words, text=True, check=False, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **more)
    return done.stdout


def options_in_help(command):
    """The long options in the left column of the help."""
    text = output(PROGRAM, command, "--help") if command else output(PROGRAM, "--help")
    found = set()
    for line in text.splitlines():
        line = re.sub(r"(-\w,) +(?=--)", r"\1", line)  # CLI11 from 2.5 on has a column for short options
        if re.match(r"( {2}| {4}| {10})-", line):
            found.update(re.findall(r"(?<![\w-])--[a-z][a-z-]+", re.split(r" {2,}|Needs", line.strip())[0]))
    return found


def bash(*words):
    """What bash offers for the last word."""
    script = ('source "$1/backtrail.bash"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); '
              '_backtrail; printf "%s\\n" "${COMPREPLY[@]}"')
    return output("bash", "-c", script, "bash", FOLDER, "backtrail", *words).split()


class Completions(unittest.TestCase):
    def needs(self, shell):
        if not shutil.which(shell):
            self.skipTest(shell + " is not installed")

    def test_are_what_the_help_lists(self):
        done = subprocess.run([sys.executable, os.path.join(FOLDER, "generate.py"), "--check", PROGRAM],
                              check=False, text=True, capture_output=True)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_help_has_options(self):
        self.assertIn("--max-disk", options_in_help("record"))
        self.assertIn("--markdown", options_in_help("report"))

    def test_bash_offers_commands_and_their_options(self):
        self.assertLessEqual(set(COMMANDS), set(bash("")))
        self.assertEqual(bash("rep"), ["replay", "report"])
        for command in COMMANDS:
            offered = {word for word in bash(command, "--") if word.startswith("--")}
            self.assertEqual(offered, options_in_help(command), command)

    def test_bash_offers_values(self):
        self.assertIn("perf-bts", bash("serve", "--source", ""))
        self.assertIn("none", bash("record", "--stats", "--source", ""))
        self.assertEqual(bash("tail", "--format", "r"), ["raw"])
        self.assertEqual(bash("record", "--ring", ""), [])

    def test_bash_offers_files_and_programs_where_they_stand(self):
        self.assertIn("env", bash("record", "env"))
        self.assertIn("env", bash("serve", ":0", "env"))
        self.assertIn("/bin", bash("report", "/bi"))
        # The program's own words; its options are not the recorder's.
        self.assertNotIn("--ring", bash("record", "--", "env", "--"))
        self.assertNotIn("--ring", bash("record", "-o", "f", "env", "--"))

    def test_fish(self):
        self.needs("fish")
        for command in COMMANDS:
            text = output("fish", "--no-config", "-c",
                          'source "%s/backtrail.fish"; complete -C "backtrail %s --"' % (FOLDER, command))
            offered = {line.split("\t")[0] for line in text.splitlines() if line.startswith("--")}
            self.assertEqual(offered, options_in_help(command), text)

    def test_zsh(self):
        self.needs("zsh")
        for command in COMMANDS:
            # Stubs of zsh's own functions: _arguments is told all options.
            script = ('_arguments() { if [[ $1 == -C ]]; then state=rest; else print -rl -- "$@"; fi }; '
                      'words=(%s --); source "%s/backtrail.zsh"' % (command, FOLDER))
            text = output("zsh", "-fc", script)
            offered = set(re.findall(r"^(--[a-z-]+)\[", text, re.MULTILINE))
            self.assertEqual(offered, options_in_help(command), text)


if __name__ == "__main__":
    run_tests.main()
