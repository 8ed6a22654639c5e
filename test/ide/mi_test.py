#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The commands of gdb's machine interface that IDEs send (cpptools, CLion, Eclipse CDT, Qt Creator), to
backtrail-gdbserver where they would start gdbserver.

mi_test.py SOURCE BUILD FOLDER [GDB]
"""

import os
import queue
import re
import shutil
import subprocess
import sys
import threading
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import run_tests  # noqa: E402

SOURCE, BUILD, FOLDER = sys.argv[1:4]
GDB = sys.argv[4] if len(sys.argv) > 4 else "gdb"
PATIENCE = 60
LOOP = "#include <unistd.h>\nvolatile long n;\nint main(void) {\n  for (;;) ++n;\n}\n"


class Session:
    """One gdb, as an IDE starts it."""

    def __init__(self, program, *, asynchronous=True):
        self.gdb = subprocess.Popen([GDB, "-nx", "-q", "--interpreter=mi2", program], cwd=FOLDER, text=True,
                                    stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.lines = queue.Queue()
        self.log = []
        self.stops = []
        self.number = 0
        threading.Thread(target=self.read, daemon=True).start()
        self.ask("-gdb-set debuginfod enabled off")
        self.ask("-gdb-set sysroot /")
        self.ask("-gdb-set confirm off")
        if asynchronous:
            self.ask("-gdb-set mi-async on")

    def read(self):
        for line in self.gdb.stdout:
            self.lines.put(line.rstrip("\n"))
        self.lines.put(None)

    def line(self):
        line = self.lines.get(timeout=PATIENCE)
        assert line is not None, "gdb has ended"
        self.log.append(line)
        if line.startswith("*stopped"):
            self.stops.append(line)
        return line

    def ask(self, command, wanted=("done", "running", "connected")):
        self.number += 1
        self.gdb.stdin.write("%d%s\n" % (self.number, command))
        self.gdb.stdin.flush()
        while True:
            found = re.match(r"%d\^(\w+)(.*)" % self.number, self.line())
            if found:
                assert found.group(1) in wanted, (command, found.group(0), self.log[-10:])
                return found.group(2)

    def stop(self):
        while not self.stops:
            self.line()
        return self.stops.pop(0)

    def run(self, command):
        """Runs until the next stop; returns its record."""
        self.stops.clear()
        self.ask(command)
        return self.stop()

    def close(self):
        try:
            self.ask("-gdb-exit", wanted=("exit",))
            self.gdb.wait(timeout=PATIENCE)
        finally:
            self.gdb.kill()
            self.gdb.communicate()


class Server:
    """backtrail-gdbserver, started by an IDE: it waits for the line that gdbserver prints."""

    def __init__(self, *words):
        self.process = subprocess.Popen([BUILD + "/backtrail-gdbserver", "--once", *words], cwd=FOLDER,
                                        text=True, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
        for line in self.process.stderr:
            found = re.match(r"Listening on port (\d+)", line)
            if found:
                self.port = found.group(1)
                break

    def close(self):
        self.process.kill()
        self.process.communicate()


class MachineInterface(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        shutil.rmtree(FOLDER, ignore_errors=True)
        os.makedirs(FOLDER)
        cls.program = FOLDER + "/shop"
        subprocess.run([os.environ.get("CXX", "g++"), "-g", "-O0", "-fcf-protection=none",
                        SOURCE + "/test/demo/shop.cpp", "-o", cls.program], check=True)
        cls.loop = FOLDER + "/loop"
        subprocess.run([os.environ.get("CC", "gcc"), "-g", "-O0", "-x", "c", "-", "-o", cls.loop],
                       input=LOOP, text=True, check=True)

    def connected(self, program, **more):
        server = Server("localhost:0", program)
        self.addCleanup(server.close)
        session = Session(program, **more)
        self.addCleanup(session.close)
        session.ask("-target-select remote localhost:" + server.port)
        return session

    def test_a_session_with_steps_back(self):
        for asynchronous in (True, False):
            with self.subTest(asynchronous=asynchronous):
                session = self.connected(self.program, asynchronous=asynchronous)
                session.ask("-break-insert -f main")
                self.assertIn('reason="breakpoint-hit"', session.run("-exec-continue"))
                session.ask('-interpreter-exec console "record btrace"')
                # A Step Back button is shown for it.
                self.assertIn('"reverse"', session.ask("-list-target-features"))
                first = session.run("-exec-next")
                session.run("-exec-next")
                back = session.run("-exec-next --reverse")
                self.assertIn('reason="end-stepping-range"', back)
                line = r'line="(\d+)"'
                self.assertEqual(re.search(line, back).group(1), re.search(line, first).group(1))
                session.ask("-break-delete")
                self.assertIn('line="33"', session.run("-exec-continue --reverse"))
                self.assertIn('func="main"', session.ask("-thread-info"))
                stop = session.run("-exec-continue")
                if "SIGILL" not in stop:  # the end of the history; from there on the program lives
                    stop = session.run("-exec-continue")
                self.assertIn('signal-name="SIGILL"', stop)
                self.assertIn('func="check_shelf', session.ask("-stack-list-frames"))
                session.run("-exec-step-instruction --reverse")

    def test_an_interrupt(self):
        session = self.connected(self.loop)
        session.ask("-break-insert -f main")
        session.run("-exec-continue")
        session.ask('-interpreter-exec console "record btrace"')
        session.ask("-break-delete")  # the loop begins there
        session.stops.clear()
        session.ask("-exec-continue")
        session.ask("-exec-interrupt")
        self.assertIn('signal-name="SIGINT"', session.stop())
        session.run("-exec-next --reverse")

    def test_a_crash_file(self):
        core = FOLDER + "/core"
        subprocess.run([BUILD + "/backtrail", "record", "-o", core, "--", self.program], check=False,
                       stderr=subprocess.DEVNULL)
        session = Session(self.program)
        self.addCleanup(session.close)
        session.ask('-target-select remote | %s/backtrail replay - %s' % (BUILD, core))
        self.assertIn('"reverse"', session.ask("-list-target-features"))
        self.assertIn('reason="end-stepping-range"', session.run("-exec-next --reverse"))
        session.ask("-break-insert put_back")
        self.assertIn('reason="breakpoint-hit"', session.run("-exec-continue --reverse"))


if __name__ == "__main__":
    run_tests.main()
