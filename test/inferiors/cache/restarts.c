// Calls that signals interrupt: restarted or failing with EINTR, and the registers after them.
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int wrong;
static volatile int ticks, write_to = -1;
static volatile long next_tick;

static void expect(int ok, int line) {
  if (!ok) {
    wrong = line;
    fprintf(stderr, "line %d\n", line);
  }
}

// Each tick is twice as far away as the one before. With a fixed interval, a tracer that takes
// longer for a signal than the interval would find the next one pending whenever a handler returns,
// and the program would make no progress.
static void tick_in(long microseconds) {
  struct itimerval timer = {{0, 0}, {0, microseconds}};
  next_tick = microseconds;
  setitimer(ITIMER_REAL, &timer, NULL);
}

static void tick(int number) {
  (void)number;
  ++ticks;
  if (ticks == 3 && write_to >= 0 && write(write_to, "x", 1) != 1) _exit(9);
  if (next_tick > 0) tick_in(next_tick < 200000 ? next_tick * 2 : next_tick);
}

static void set_timer(int on) {
  tick_in(on ? 2000 : 0);
}

static void handle(int flags) {
  struct sigaction action = {.sa_handler = tick, .sa_flags = flags};
  sigaction(SIGALRM, &action, NULL);
}

// Makes a read() and checks the registers after the call.
static long raw_read(int fd, char* to) {
  long result = 0, rcx = 0, behind = 0;
  __asm__ volatile(
      "xor %%eax, %%eax\n mov $1, %%edx\n syscall\n 1: mov %%rcx, %1\n lea 1b(%%rip), %2\n"
      : "=a"(result), "=&r"(rcx), "=&r"(behind)
      : "D"(fd), "S"(to)
      : "rcx", "rdx", "r10", "r11", "memory");
  // After a call left through a signal's handler, rcx may be 2 lower.
  expect(rcx == behind || rcx == behind - 2, __LINE__);
  return result;
}

int main(void) {
  int ends[2];
  char byte = 0;
  if (pipe(ends) != 0) return 2;
  handle(SA_RESTART);
  write_to = ends[1];
  set_timer(1);
  expect(read(ends[0], &byte, 1) == 1 && byte == 'x', __LINE__);
  ticks = 0;
  expect(raw_read(ends[0], &byte) == 1, __LINE__);
  set_timer(0);
  write_to = -1;

  handle(0);
  set_timer(1);
  expect(read(ends[0], &byte, 1) == -1 && errno == EINTR, __LINE__);
  expect(poll(NULL, 0, 1000) == -1 && errno == EINTR, __LINE__);
  struct timespec second = {1, 0}, left = {0, 0};
  expect(nanosleep(&second, &left) == -1 && errno == EINTR && left.tv_nsec > 0, __LINE__);
  sigset_t none;
  sigemptyset(&none);
  // Once without a mask, and once with a mask for the time of the call.
  const int events = epoll_create1(0);
  struct epoll_event event;
  const sigset_t* masks[] = {NULL, &none};
  for (int i = 0; i < 2; ++i) {
    expect(ppoll(NULL, 0, &second, masks[i]) == -1 && errno == EINTR, __LINE__);
    expect(pselect(0, NULL, NULL, NULL, &second, masks[i]) == -1 && errno == EINTR, __LINE__);
    expect(epoll_pwait(events, &event, 1, 1000, masks[i]) == -1 && errno == EINTR, __LINE__);
  }
  expect(sigsuspend(&none) == -1 && errno == EINTR, __LINE__);
  expect(pause() == -1 && errno == EINTR, __LINE__);
  set_timer(0);

  pid_t child = fork();
  if (child == 0) {
    usleep(20000);
    _exit(5);
  }
  handle(SA_RESTART);
  set_timer(1);
  int status = 0;
  expect(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 5, __LINE__);
  set_timer(0);
  printf("restarts %s\n", wrong ? "wrong" : "right");
  return wrong != 0;
}

// SPDX-License-Identifier: Apache-2.0
