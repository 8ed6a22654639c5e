#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""stepBack and reverseContinue through gdb's DAP server, as an editor sends them.

dap_test.py SOURCE BACKTRAIL FOLDER [GDB]
"""

import json
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

SOURCE, BACKTRAIL, FOLDER = sys.argv[1:4]
GDB = sys.argv[4] if len(sys.argv) > 4 else "gdb"
PATIENCE = 60
SKIPPED = 77


class Client:
    """One editor."""

    def __init__(self, *options):
        self.log = []
        self.gdb = subprocess.Popen(
            [GDB, "-nx", "-q", "-iex", "set debuginfod enabled off", "-iex", "set sysroot /",
             "-i", "dap", "-x", SOURCE + "/server/gdb/backtrail-dap.py", *options],
            cwd=FOLDER, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.messages = queue.Queue()
        self.events = []
        self.number = 0
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        out = self.gdb.stdout
        while True:
            length = None
            for line in iter(out.readline, b"\r\n"):
                if not line:
                    self.messages.put(None)
                    return
                found = re.match(rb"Content-Length: (\d+)", line)
                length = int(found.group(1)) if found else length
            self.messages.put(json.loads(out.read(length)))

    def message(self):
        message = self.messages.get(timeout=PATIENCE)
        self.log.append(message)
        assert message is not None, "gdb has ended: " + self.gdb.stderr.read().decode()
        return message

    def send(self, command, **arguments):
        self.number += 1
        text = json.dumps({"seq": self.number, "type": "request", "command": command,
                           "arguments": arguments}).encode()
        self.gdb.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(text), text))
        self.gdb.stdin.flush()
        return self.number

    def answer(self, number):
        while True:
            message = self.message()
            if message["type"] == "event":
                self.events.append(message)
            elif message.get("request_seq") == number:
                return message

    def ask(self, command, **arguments):
        answer = self.answer(self.send(command, **arguments))
        assert answer["success"], answer
        return answer.get("body") or {}

    def event(self, *names):
        """The next event of one of these names."""
        while True:
            for at, event in enumerate(self.events):
                if event["event"] in names:
                    del self.events[:at + 1]
                    return event.get("body") or {}
            message = self.message()
            if message["type"] == "event":
                self.events.append(message)

    def attach(self, program, target, functions=()):
        """Connects as an editor does; returns the capabilities and the first stop."""
        capabilities = self.ask("initialize", clientID="test", linesStartAt1=True)
        self.event("initialized")
        attached = self.send("attach", program=program, target=target)
        if functions:
            self.ask("setFunctionBreakpoints", breakpoints=[{"name": name} for name in functions])
        self.ask("configurationDone")
        answer = self.answer(attached)
        assert answer["success"], answer
        return capabilities, self.event("stopped")

    def line(self, thread):
        frame = self.ask("stackTrace", threadId=thread, startFrame=0, levels=1)["stackFrames"][0]
        return frame["name"].split("(")[0], frame["line"]

    def close(self):
        number = self.send("disconnect", terminateDebuggee=True)
        try:
            self.answer(number)
            self.gdb.wait(timeout=PATIENCE)
        finally:
            self.gdb.kill()
            self.gdb.communicate()


class StepBack(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        shutil.rmtree(FOLDER, ignore_errors=True)
        os.makedirs(FOLDER)
        cls.program = FOLDER + "/shop"
        subprocess.run([os.environ.get("CXX", "g++"), "-g", "-O0", "-fcf-protection=none",
                        SOURCE + "/test/demo/shop.cpp", "-o", cls.program], check=True)
        cls.core = FOLDER + "/core"
        subprocess.run([BACKTRAIL, "record", "-o", cls.core, "--", cls.program], check=False,
                       stderr=subprocess.DEVNULL)

    def client(self, *options):
        client = Client(*options)
        self.addCleanup(client.close)
        return client

    def step_back_to(self, client, thread, place):
        """Steps back from the crash."""
        self.assertEqual(client.line(thread)[0], "check_shelf")
        places = []
        while place not in places and len(places) < 12:
            client.ask("stepBack", threadId=thread, granularity="statement")
            client.event("stopped")
            places.append(client.line(thread))
        self.assertIn(place, places)

    def test_in_a_crash_file(self):
        client = self.client()
        capabilities, stop = client.attach(self.program, "| %s replay - %s" % (BACKTRAIL, self.core))
        self.assertTrue(capabilities["supportsStepBack"])
        thread = stop["threadId"]
        self.step_back_to(client, thread, ("main", 37))
        client.ask("stepIn", threadId=thread)
        client.event("stopped")
        self.assertEqual(client.line(thread)[0], "check_shelf")  # forwards again
        client.ask("setFunctionBreakpoints", breakpoints=[{"name": "put_back"}])
        client.ask("reverseContinue", threadId=thread)
        self.assertEqual(client.event("stopped")["reason"], "breakpoint")
        self.assertEqual(client.line(thread)[0], "put_back")
        client.ask("setFunctionBreakpoints", breakpoints=[])
        client.ask("reverseContinue", threadId=thread)
        self.assertTrue(client.event("stopped")["reason"])  # the trace's begin
        client.ask("setFunctionBreakpoints", breakpoints=[{"name": "reserve"}])
        client.ask("continue", threadId=thread)
        client.event("stopped")
        self.assertEqual(client.line(thread)[0], "reserve")

    def test_in_a_living_program(self):
        client = self.client()
        _, stop = client.attach(self.program, "| %s serve - %s" % (BACKTRAIL, self.program), ["main"])
        thread = stop["threadId"]
        client.ask("continue", threadId=thread)
        client.event("stopped")
        self.assertEqual(client.line(thread)[0], "main")
        client.ask("continue", threadId=thread)
        self.assertEqual(client.event("stopped")["reason"], "signal")
        self.step_back_to(client, thread, ("main", 36))
        client.ask("next", threadId=thread)
        client.event("stopped")
        self.assertEqual(client.line(thread), ("main", 37))

    def stop_in_main(self, server):
        client = self.client()
        _, stop = client.attach(self.program, "| %s - %s" % (server, self.program), ["main"])
        client.ask("continue", threadId=stop["threadId"])
        client.event("stopped")
        return client, stop["threadId"]

    def test_an_error_where_nothing_goes_backwards(self):
        client, thread = self.stop_in_main("gdbserver --once")
        answer = client.answer(client.send("stepBack", threadId=thread))
        self.assertFalse(answer["success"])
        self.assertIn("backwards", answer["message"])
        client.ask("next", threadId=thread)  # still forwards
        client.event("stopped")

    def test_an_error_where_nothing_is_recorded(self):
        os.environ["BACKTRAIL_DAP_RECORD"] = "0"
        self.addCleanup(os.environ.pop, "BACKTRAIL_DAP_RECORD")
        client, thread = self.stop_in_main(BACKTRAIL + " serve")
        answer = client.answer(client.send("stepBack", threadId=thread))
        self.assertFalse(answer["success"])
        self.assertIn("monitor history on", answer["message"])
        client.ask("next", threadId=thread)
        client.event("stopped")
        client.ask("evaluate", expression="monitor history on", context="repl")
        client.ask("next", threadId=thread)
        client.event("stopped")
        there = client.line(thread)
        client.ask("stepBack", threadId=thread)
        client.event("stopped")
        self.assertNotEqual(client.line(thread), there)


if __name__ == "__main__":
    version = subprocess.run([GDB, "--version"], text=True, capture_output=True, check=False).stdout
    major = re.search(r"(\d+)\.\d+", version.splitlines()[0] if version else "")
    if not major or int(major.group(1)) < 14:
        print("gdb before 14 has no DAP server")
        sys.exit(SKIPPED)
    run_tests.main()
