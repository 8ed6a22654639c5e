# SPDX-License-Identifier: Apache-2.0
"""The snippets of docs/ci.md: YAML that parses, commands that do what the page says.

ci_snippets.py DOCS BACKTRAIL PROGRAM FOLDER: PROGRAM crashes when it is run with the word "null".
"""

import glob
import os
import shutil
import subprocess
import sys

SKIPPED = 77


def snippet(text, heading):
    """The first indented block below a heading."""
    lines = text.split("\n## " + heading + "\n", 1)[1].splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("    "))
    block = []
    for line in lines[first:]:
        if line and not line.startswith("    "):
            break
        block.append(line[4:])
    return "\n".join(block)


def run(shell, script, folder, environment):
    """Runs a script as a runner would; what it prints is shown when something is wrong."""
    done = subprocess.run(shell + [script], cwd=folder, env=environment, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    print("+", script, done.stdout, "status", done.returncode)
    return done.returncode


def check(folder, environment, test, shell):
    """A test that crashes leaves one archive, one that passes nothing."""
    for word, wanted in (("null", 1), ("fine", 0)):
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder + "/build")
        with open(folder + "/build/my_tests", "w", encoding="utf-8") as script:
            script.write("#!/bin/sh\nexec %s %s\n" % (environment["PROGRAM"], word))
        os.chmod(folder + "/build/my_tests", 0o755)
        status = run(shell, test, folder, environment)
        assert (status != 0) == (wanted != 0), status
        left = glob.glob(folder + "/crashes/*")
        assert len(left) == wanted, left
        assert all(name.endswith(".tar.zst") for name in left), left
        for name in left:
            assert run(shell, "backtrail report " + name, folder, environment) == 0


def main():
    docs, backtrail, program, folder = sys.argv[1:]
    try:
        import yaml
    except ImportError:
        print("no YAML parser for Python")
        sys.exit(SKIPPED)
    with open(docs, encoding="utf-8") as file:
        text = file.read()
    environment = dict(os.environ, PROGRAM=program,
                       PATH=os.path.dirname(backtrail) + ":" + os.environ["PATH"])

    steps = yaml.safe_load(snippet(text, "GitHub Actions"))
    assert [step.get("if") for step in steps] == [None, "failure()"], steps
    assert steps[1]["with"]["path"] == "crashes/"
    check(folder + "/github", environment, steps[0]["run"], ["bash", "-ec"])

    job = yaml.safe_load(snippet(text, "GitLab"))["test"]
    assert job["artifacts"]["paths"] == ["crashes/"], job
    check(folder + "/gitlab", environment, "\n".join(job["script"]), ["sh", "-ec"])


main()
