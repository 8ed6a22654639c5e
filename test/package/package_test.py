#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The .deb that cpack makes: its files, fields, manual pages and, where lintian is installed, its
verdict; and the .rpm, where rpmbuild is. The portable archive is the same bytes when it is made again.

package_test.py SOURCE BUILD FOLDER
"""

import glob
import os
import re
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import run_tests  # noqa: E402

SOURCE, BUILD, FOLDER = sys.argv[1:4]
PAGES = {"backtrail.1", "backtrail-gdbserver.1", "backtrail-record.1", "backtrail-report.1",
         "backtrail-replay.1", "backtrail-core.5", "backtrail-bts.7"}
# The page of each command's options.
DOCUMENTED = {"record": "backtrail-record.1", "report": "backtrail-report.1", "replay": "backtrail-replay.1",
              "serve": "backtrail.1", "why": "backtrail.1", "warm": "backtrail.1", "pack": "backtrail.1",
              "tail": "backtrail.1", "decode": "backtrail.1"}


def run(*words, **more):
    done = subprocess.run(words, text=True, check=False, stdin=subprocess.DEVNULL,
                          capture_output=True, **more)
    assert done.returncode == 0, "%s: %s%s" % (" ".join(words), done.stdout, done.stderr)
    return done.stdout


def package(generator, ending):
    folder = os.path.join(FOLDER, generator)
    shutil.rmtree(folder, ignore_errors=True)
    run("cpack", "--config", os.path.join(BUILD, "CPackConfig.cmake"), "-G", generator, "-B", folder,
        cwd=BUILD)
    return glob.glob(folder + "/*." + ending)[0]


def files_below(folder):
    return {os.path.relpath(os.path.join(place, name), folder)
            for place, _, names in os.walk(folder) for name in names}


def options_of_help(command):
    found = set()
    for line in run(BUILD + "/backtrail", command, "--help").splitlines():
        line = re.sub(r"(-\w,) +(?=--)", r"\1", line)  # CLI11 from 2.5 on has a column for short options
        found.update(re.findall(r"(?<![\w-])--[a-z][a-z-]*", re.split(" {2,}", line.strip())[0]))
    return found


class Pages(unittest.TestCase):
    def test_list_the_options_of_the_help(self):
        for command, name in DOCUMENTED.items():
            with open("%s/docs/%s" % (SOURCE, name), encoding="utf-8") as file:
                page = file.read().replace("\\-", "-")
            options = options_of_help(command)
            self.assertIn("--help", options)
            for option in options - {"--help"}:
                found = re.search(r"(?<![\w-])%s(?![\w-])" % option, page)
                self.assertTrue(found, "%s has no %s of %s" % (name, option, command))

    @unittest.skipUnless(shutil.which("man"), "man is not installed")
    def test_have_no_warnings(self):
        for page in sorted(glob.glob(SOURCE + "/docs/*.[157]")):
            if os.path.getsize(page) < 100:
                continue  # a page that stands for another one
            done = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", page],
                                  env=dict(os.environ, MANWIDTH="80", LC_ALL="C.UTF-8", MANROFFSEQ=""),
                                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
            self.assertEqual((done.returncode, done.stderr.decode()), (0, ""), page)


class Installation(unittest.TestCase):
    def test_puts_completions_where_any_zsh_finds_them(self):
        prefix = os.path.join(FOLDER, "prefix")
        shutil.rmtree(prefix, ignore_errors=True)
        run("cmake", "--install", BUILD, "--component", "data", "--prefix", prefix)
        self.assertIn("share/zsh/site-functions/_backtrail", files_below(prefix))

    def test_builds_before(self):
        # cmake --build FOLDER --target install, in a fresh folder
        needs = run("ninja", "-C", BUILD, "-t", "query", "CMakeFiles/install.util")
        self.assertRegex(needs, r"(?m)^\s+(\|\|? )?all$")


@unittest.skipUnless(all(map(shutil.which, ("dpkg-deb", "dpkg-shlibdeps", "file"))),
                     "dpkg-dev or file is not installed")
class DebianPackage(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.file = package("DEB", "deb")
        cls.root = os.path.join(FOLDER, "root")
        shutil.rmtree(cls.root, ignore_errors=True)
        run("dpkg-deb", "-x", cls.file, cls.root)
        cls.files = files_below(cls.root)

    def test_has_its_files(self):
        share = "usr/share/"
        wanted = {"usr/bin/backtrail", "usr/bin/backtrail-gdbserver",
                  share + "backtrail/backtrail-dap.py", share + "backtrail/backtrail-gdb.py",
                  share + "backtrail/cmake/Backtrail.cmake",
                  share + "cmake/Backtrail/BacktrailConfig.cmake",
                  share + "bash-completion/completions/backtrail",
                  share + "zsh/vendor-completions/_backtrail",
                  share + "fish/vendor_completions.d/backtrail.fish",
                  share + "doc/backtrail/copyright", share + "doc/backtrail/NOTICE",
                  share + "doc/backtrail/changelog.gz", share + "doc/backtrail/changelog.Debian.gz",
                  share + "lintian/overrides/backtrail"}
        wanted |= {"%sman/man%s/%s.gz" % (share, page[-1], page) for page in PAGES}
        licences = {name for name in self.files if "/doc/backtrail/licences/" in name}
        self.assertEqual(self.files - licences, wanted)
        self.assertTrue(licences)
        self.assertEqual(os.readlink(self.root + "/usr/bin/backtrail-gdbserver"), "backtrail")
        self.assertTrue(os.path.exists(self.root + "/usr/share/doc/backtrail/NOTICE"))

    def test_program_runs(self):
        self.assertIn("backtrail ", run(self.root + "/usr/bin/backtrail", "--version"))

    def test_depends_on_what_it_loads(self):
        depends = run("dpkg-deb", "-f", self.file, "Depends")
        for name in ("libc6", "libzydis", "libipt"):
            self.assertRegex(depends, r"(^|, )" + name)

    @unittest.skipUnless(shutil.which("lintian"), "lintian is not installed")
    def test_lintian_has_no_complaints(self):
        # Overrides in the package say why; what an override no longer fits is a complaint, too.
        done = subprocess.run(["lintian", "--tag-display-limit", "0", "--allow-root", self.file],
                              text=True, capture_output=True, check=False)
        self.assertEqual(done.stdout.strip(), "", done.stderr)


@unittest.skipUnless(shutil.which("rpmbuild"), "rpmbuild is not installed")
class RpmPackage(unittest.TestCase):
    def test_has_its_files(self):
        file = package("RPM", "rpm")
        files = run("rpm", "-qlp", file).split()
        for name in ("bin/backtrail", "bin/backtrail-gdbserver", "share/doc/backtrail/LICENSE",
                     "share/man/man1/backtrail-record.1.gz", "share/zsh/site-functions/_backtrail"):
            self.assertIn("/usr/" + name, files)
        self.assertRegex(run("rpm", "-qp", "--requires", file), r"libZydis\.so")


class PortableArchive(unittest.TestCase):
    def setUp(self):
        found = glob.glob(BUILD + "/backtrail-*.tar.gz")
        if not found:
            self.skipTest("this build has no portable archive")
        self.archive = found[0]
        if os.path.getmtime(self.archive) < os.path.getmtime(BUILD + "/backtrail"):
            self.skipTest("the portable archive is older than the program")

    def test_matches_its_checksum_file(self):
        run("sha256sum", "--check", "--strict", self.archive + ".sha256", cwd=BUILD)

    def test_names_no_folder_of_the_build(self):
        programs = glob.glob(BUILD + "/portable/*/lib/backtrail/backtrail")
        self.assertTrue(programs)
        for program in programs + glob.glob(BUILD + "/portable/*/bin/backtrail"):
            with open(program, "rb") as file:
                data = file.read()
            self.assertNotIn(os.path.realpath(SOURCE).encode() + b"/", data)
            self.assertNotIn(b".note.gnu.build-id", data)

    def test_is_the_same_bytes_when_made_again(self):
        with open(self.archive, "rb") as file:
            before = file.read()
        copy = os.path.join(FOLDER, "again")
        shutil.rmtree(copy, ignore_errors=True)
        os.makedirs(copy)
        # The command of the build, with other places for what it makes.
        ninja = run("ninja", "-C", BUILD, "-t", "commands", "-s", self.archive)
        command = [line for line in ninja.splitlines() if "MakePortable.cmake" in line][-1]
        name = os.path.basename(self.archive)
        command = command.replace("-DARCHIVE=" + self.archive, "-DARCHIVE=%s/%s" % (copy, name))
        command = command.replace("-DFOLDER=" + BUILD + "/portable", "-DFOLDER=" + copy)
        self.assertIn(copy, command)
        run("sh", "-c", "umask 077; " + command)
        with open(os.path.join(copy, name), "rb") as file:
            self.assertEqual(file.read(), before)


if __name__ == "__main__":
    run_tests.main()
