# SPDX-License-Identifier: Apache-2.0
"""A gdb that is driven by its machine interface, with a limit on every wait."""
import os
import re
import selectors
import signal
import subprocess
import time


class Stuck(Exception):
    """Somebody did not answer within the limit."""


class Ended(Exception):
    """gdb has ended by itself."""


class Gdb:
    """One gdb process. `limit` is how many seconds an answer may take."""

    def __init__(self, words, environment, limit, log):
        self.limit = limit
        self.log = log
        self.number = 0
        self.pending = b""
        self.lines = []  # lines not looked at yet
        self.non_stop = False
        self.running = set()  # threads that gdb calls running; "all" stands for every one
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, env=environment,
                                        start_new_session=True)
        os.set_blocking(self.process.stdout.fileno(), False)
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.process.stdout, selectors.EVENT_READ)

    def read(self, seconds):
        """Reads what gdb prints within the time. @return False if nothing came."""
        if not self.selector.select(max(0.0, seconds)):
            return False
        data = self.process.stdout.read()
        if not data:
            raise Ended("gdb ended with status %s" % self.process.wait())
        self.pending += data
        *whole, self.pending = self.pending.split(b"\n")
        for line in whole:
            text = line.decode(errors="replace").rstrip("\r")
            self.log("< " + text)
            self.note(text)
            self.lines.append(text)
        return True

    def note(self, text):
        """Keeps count of what runs."""
        name = re.search(r'thread-id="([^"]+)"', text)
        if text.startswith("*running"):
            self.running.discard("all")
            self.running.add(name.group(1) if name else "all")
        elif text.startswith("*stopped"):
            stopped = re.search(r'stopped-threads="all"|reason="exited', text)
            if stopped or not name:
                self.running.clear()
            else:
                self.running.discard(name.group(1))
                self.running.discard("all")
        elif re.match(r"\d+\^running", text):
            self.running.add("all")
        elif text.startswith("=thread-exited"):
            self.running.discard(re.search(r'id="([^"]+)"', text).group(1))
        elif re.match(r"=thread-group-exited|\d+\^error", text):
            # gdb says that the program runs before it finds that it cannot.
            self.running.clear()

    def wait_for(self, wanted, what):
        """@return the first line that the pattern matches."""
        until = time.monotonic() + self.limit
        while True:
            while self.lines:
                line = self.lines.pop(0)
                if re.match(wanted, line):
                    return line
            left = until - time.monotonic()
            if left <= 0:
                raise Stuck("no answer to %s within %d s" % (what, self.limit))
            self.read(left)

    def command(self, text):
        """Runs a command of the prompt. @return the line with its result: done, running, error, exit or
        connected."""
        self.number += 1
        if not text.startswith("-"):
            text = '-interpreter-exec console "%s"' % text.replace('"', r"\"")
        self.log("> %d%s" % (self.number, text))
        self.process.stdin.write(("%d%s\n" % (self.number, text)).encode())
        self.process.stdin.flush()
        return self.wait_for(r"%d\^" % self.number, text).split("^", 1)[1]

    def settle(self, seconds):
        """Lets the program run. @return True if it has stopped."""
        until = time.monotonic() + seconds
        while self.running and time.monotonic() < until:
            self.read(until - time.monotonic())
        return not self.running

    def stopped(self, what):
        """Waits until nothing runs."""
        until = time.monotonic() + self.limit
        # In non-stop gdb learns of threads that have ended when it lists them.
        list_after = time.monotonic() + 2
        while self.running:
            if self.non_stop and time.monotonic() > list_after:
                list_after = until
                self.command("-thread-info")
            left = until - time.monotonic()
            if left <= 0:
                raise Stuck("no stop after %s within %d s; running: %s" %
                            (what, self.limit, " ".join(sorted(self.running))))
            self.read(min(left, 2))

    def end(self, how=signal.SIGKILL):
        if self.process.poll() is None:
            self.process.send_signal(how)
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()
