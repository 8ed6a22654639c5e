#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The steps of action.yml and the scripts of .ci/gitlab.yml, run as a runner would run them: without
privileges, in a folder of their own. Steps that use other actions are only listed.

action_test.py SOURCE PORTABLE PROGRAM FOLDER      PORTABLE is the portable archive; PROGRAM crashes
                                                   when it is run with the word "null"
"""

import glob
import hashlib
import os
import re
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import run_tests  # noqa: E402

try:
    import yaml
except ImportError:
    print("no YAML parser for Python")
    sys.exit(77)

SOURCE, PORTABLE, PROGRAM, FOLDER = sys.argv[1:5]
NOBODY = 65534


def unprivileged():
    """The words that drop root's rights, where this is root and nobody can read what is needed."""
    drop = ["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups",
            "--no-new-privs", "--bounding-set=-all", "--inh-caps=-all"]
    if os.getuid() != 0:
        return []
    reads = drop + ["sh", "-c", 'for file; do test -r "$file" || exit 1; done', "sh", PORTABLE, PROGRAM,
                    SOURCE + "/action.yml"]
    return drop if subprocess.run(reads, check=False).returncode == 0 else []


class Runner:
    """Evaluates a composite action's steps; knows of expressions what action.yml has."""

    def __init__(self, folder, inputs, **environment):
        self.folder = folder
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder + "/temp")
        with open(SOURCE + "/action.yml", encoding="utf-8") as file:
            self.action = yaml.safe_load(file)
        unknown = set(inputs) - set(self.action["inputs"])
        assert not unknown, unknown
        self.inputs = {name: what["default"] for name, what in self.action["inputs"].items()}
        self.inputs.update(inputs)
        self.environment = environment
        self.outputs = {}
        self.used = []
        self.log = ""
        self.path = "/usr/bin:/bin"
        self.words = unprivileged()
        if self.words:
            for place in (folder, folder + "/temp"):
                os.chown(place, NOBODY, NOBODY)

    def value(self, name):
        if name.startswith("inputs."):
            return self.inputs[name[7:]]
        if name.startswith("steps."):
            _, step, _, output = name.split(".")
            return self.outputs.get(step, {}).get(output, "")
        # In jobs in containers github.action_path names a folder of the host.
        return {"github.action_path": "/nowhere", "github.action_ref": ""}.get(name, name)

    def text(self, text):
        return re.sub(r"\$\{\{ *([\w.-]+) *\}\}", lambda found: self.value(found.group(1)), text)

    def wanted(self, condition, failed):
        always = "always()" in condition
        for part in condition.split(" && "):
            compared = re.match(r"([\w.-]+) (==|!=) '(.*)'$", part)
            if compared:
                equal = self.value(compared.group(1)) == compared.group(3)
                if equal != (compared.group(2) == "=="):
                    return False
            else:
                assert part in ("", "always()"), part
        return always or not failed

    def run(self):
        """Returns whether no step failed."""
        failed = False
        for step in self.action["runs"]["steps"]:
            if not self.wanted(step.get("if", ""), failed):
                continue
            if "uses" in step:
                self.used.append((step["uses"], {key: self.text(value)
                                                 for key, value in step["with"].items()}))
            else:
                failed = self.script(step) != 0 or failed
        return not failed

    def script(self, step):
        assert step["shell"] == "bash"
        files = {name: "%s/temp/%s" % (self.folder, name.lower())
                 for name in ("GITHUB_PATH", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
        environment = dict({key: self.text(value) for key, value in step["env"].items()}, **files,
                           PATH=self.path, HOME=self.folder, RUNNER_TEMP=self.folder + "/temp",
                           GITHUB_ACTION_PATH=SOURCE)
        environment.update(self.environment)
        done = subprocess.run(self.words + ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c",
                                            self.text(step["run"])],
                              cwd=self.folder, env=environment, text=True, check=False,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        self.log += done.stdout
        if os.path.exists(files["GITHUB_OUTPUT"]):
            with open(files["GITHUB_OUTPUT"], encoding="utf-8") as file:
                pairs = dict(line.rstrip("\n").split("=", 1) for line in file)
            self.outputs.setdefault(step["id"], {}).update(pairs)
            os.remove(files["GITHUB_OUTPUT"])
        if os.path.exists(files["GITHUB_PATH"]):
            with open(files["GITHUB_PATH"], encoding="utf-8") as file:
                self.path = ":".join(file.read().split()) + ":" + self.path
            os.remove(files["GITHUB_PATH"])
        return done.returncode

    def summary(self):
        try:
            with open(self.folder + "/temp/github_step_summary", encoding="utf-8") as file:
                return file.read()
        except FileNotFoundError:
            return ""


class Action(unittest.TestCase):
    def test_a_crash_leaves_an_archive_and_a_report(self):
        runner = Runner(FOLDER + "/crash", {"archive": PORTABLE, "run": "true\n%s null\n" % PROGRAM})
        self.assertFalse(runner.run(), runner.log)
        self.assertEqual(runner.outputs["report"]["crashes"], "1", runner.log)
        self.assertEqual(len(glob.glob(runner.folder + "/crashes/*.core.tar.zst")), 1)
        self.assertIn("SIGSEGV", runner.summary())
        self.assertEqual([name for name, _ in runner.used],
                         ["actions/cache@v4", "actions/upload-artifact@v4"])
        self.assertEqual(runner.used[1][1], {"name": "crashes", "path": "crashes"})
        # The kept translations are where the cache is told to look.
        self.assertEqual(runner.used[0][1]["path"], runner.folder + "/.cache/backtrail")
        self.assertTrue(os.listdir(runner.folder + "/.cache/backtrail"))

    def test_the_cache_is_where_the_environment_puts_it(self):
        place = FOLDER + "/place/own"
        runner = Runner(FOLDER + "/place", {"archive": PORTABLE, "run": "%s fine" % PROGRAM},
                        XDG_CACHE_HOME=place)
        self.assertTrue(runner.run(), runner.log)
        self.assertEqual(runner.used[0][1]["path"], place + "/backtrail")
        self.assertTrue(os.listdir(place + "/backtrail"))

    def test_jobs_of_a_matrix_have_caches_of_their_own(self):
        keys = set()
        for leg in ("gcc", "clang"):
            runner = Runner(FOLDER + "/leg", {"archive": PORTABLE, "artifact": "crashes-" + leg})
            self.assertTrue(runner.run(), runner.log)
            key, restore = (runner.used[0][1][name] for name in ("key", "restore-keys"))
            self.assertTrue(key.startswith(restore.split()[0]), (key, restore))
            keys.add(key)
        self.assertEqual(len(keys), 2)

    def test_commands_see_no_variables_of_the_action(self):
        runner = Runner(FOLDER + "/variables", {"archive": PORTABLE, "run": "env"})
        self.assertTrue(runner.run(), runner.log)
        self.assertNotRegex(runner.log, r"(?m)^(COMMANDS|OPTIONS|CRASHES)=")

    def test_without_a_version_there_is_no_download(self):
        runner = Runner(FOLDER + "/version", {"run": "true"})
        self.assertFalse(runner.run())
        self.assertIn("name a portable archive by the input `archive`", runner.log)

    def test_nothing_is_uploaded_after_a_success(self):
        runner = Runner(FOLDER + "/success", {"archive": PORTABLE, "run": "%s fine" % PROGRAM})
        self.assertTrue(runner.run(), runner.log)
        self.assertEqual(runner.outputs["report"]["crashes"], "0")
        self.assertEqual([name for name, _ in runner.used], ["actions/cache@v4"])
        self.assertEqual(runner.summary(), "")

    def test_commands_end_at_the_first_that_fails(self):
        runner = Runner(FOLDER + "/failure", {"archive": PORTABLE, "cache": "false",
                                              "run": "echo begins\nfalse | true\necho goes on\n"})
        self.assertFalse(runner.run())
        self.assertIn("begins", runner.log)
        self.assertNotIn("goes on", runner.log)
        self.assertEqual(runner.used, [])

    def test_later_steps_find_the_program(self):
        runner = Runner(FOLDER + "/path", {"archive": PORTABLE})
        self.assertTrue(runner.run(), runner.log)
        done = subprocess.run(["sh", "-c", "backtrail --version"], env={"PATH": runner.path}, check=False,
                              text=True, capture_output=True)
        self.assertIn(runner.outputs["install"]["version"], done.stdout)

    def test_a_damaged_archive_is_not_installed(self):
        shutil.rmtree(FOLDER + "/damaged", ignore_errors=True)
        os.makedirs(FOLDER + "/damaged")
        archive = FOLDER + "/damaged/a.tar.gz"
        shutil.copy(PORTABLE, archive)
        with open(archive + ".sha256", "w", encoding="utf-8") as file:
            file.write("0" * 64 + "  a.tar.gz\n")
        runner = Runner(FOLDER + "/damaged/run", {"archive": archive, "run": "true"})
        self.assertFalse(runner.run())
        self.assertNotIn("version", runner.outputs.get("install", {}))


# Copies what lies at $SERVED under the last part of the address.
CURL = """#!/bin/sh
while [ $# -gt 1 ]; do
  [ "$1" != --output ] || output=$2
  shift
done
cp "$SERVED/${1##*/}" "$output"
"""


class GitLab(unittest.TestCase):
    def job(self, name, **environment):
        """Runs a job of the template; returns what its script and the later one did, and its folder."""
        with open(SOURCE + "/.ci/gitlab.yml", encoding="utf-8") as file:
            job = yaml.safe_load(file)[".backtrail"]
        self.assertEqual(job["artifacts"]["paths"], ["crashes/"])
        self.assertEqual(job["cache"]["paths"], [".cache/backtrail/"])
        folder = FOLDER + "/" + name
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder + "/bin")
        with open(folder + "/bin/curl", "w", encoding="utf-8") as file:
            file.write(CURL)
        os.chmod(folder + "/bin/curl", 0o755)
        environment = dict(job["variables"], PATH=folder + "/bin:/usr/bin:/bin", CI_PROJECT_DIR=folder,
                           **dict({"BACKTRAIL_ARCHIVE": PORTABLE}, **environment))
        test = ["echo script; backtrail record --pack --attachment -o crashes/ -- %s null" % PROGRAM]
        # The place of the program is of the container; here it is the test's own.
        scripts = ["\n".join(part).replace("/tmp/backtrail", folder + "/program")
                   for part in (job["before_script"] + test, job["after_script"])]
        return [subprocess.run(["sh", "-ec", script], cwd=folder, env=environment, text=True, check=False,
                               capture_output=True) for script in scripts], folder

    def test_a_job_that_extends_the_template(self):
        done, folder = self.job("gitlab")
        self.assertNotEqual(done[0].returncode, 0)
        self.assertRegex(done[0].stderr, r"(?m)^\[\[ATTACHMENT\|crashes/[^\n]*\.core\.tar\.zst\]\]$")
        self.assertEqual(done[1].returncode, 0, done[1].stderr)
        self.assertIn("SIGSEGV", done[1].stdout)
        self.assertTrue(os.listdir(folder + "/.cache/backtrail"))

    def test_the_translations_of_an_image_are_used(self):
        place = FOLDER + "/image_cache"
        shutil.rmtree(place, ignore_errors=True)
        _, folder = self.job("image", XDG_CACHE_HOME=place)
        self.assertTrue(os.listdir(place + "/backtrail"))
        self.assertFalse(os.path.exists(folder + "/.cache"))

    def test_an_archive_from_an_address_is_checked(self):
        served = FOLDER + "/served"
        shutil.rmtree(served, ignore_errors=True)
        os.makedirs(served)
        shutil.copy(PORTABLE, served + "/a.tar.gz")
        address = {"BACKTRAIL_ARCHIVE": "https://gitlab.example.com/1/a.tar.gz", "SERVED": served}
        with open(PORTABLE, "rb") as file:
            right = hashlib.sha256(file.read()).hexdigest()
        for sum_, installed in ((None, False), ("0" * 64, False), (right, True)):
            if sum_:
                with open(served + "/a.tar.gz.sha256", "w", encoding="utf-8") as file:
                    file.write(sum_ + "  backtrail-0.1.0-x86_64.tar.gz\n")
            done, _ = self.job("address", **address)
            self.assertEqual("script" in done[0].stdout, installed, done)


if __name__ == "__main__":
    run_tests.main()
