// Job control: stops and continues, by the program itself and from outside, many times.
//   itself   a child with a busy thread stops itself
//   outside  each stop signal stops a busy child
//   thread   one of its threads is sent the signal
//   handler  each SIGCONT is handled
// Exits with 0 if every process saw what it sees without a tracer.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(ok)                                       \
  do {                                                  \
    if (!(ok)) {                                        \
      fprintf(stderr, "line %d is not so\n", __LINE__); \
      kill(child, SIGKILL);                             \
      exit(1);                                          \
    }                                                   \
  } while (0)

static pid_t child;
static int news[2];
static volatile unsigned long work;

static int fib(int n) {
  return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

static void* be_busy(void* argument) {
  const pid_t self = gettid();
  if (argument != NULL && write(news[1], &self, sizeof self) != sizeof self) _exit(2);
  for (;;) work += (unsigned long)fib(5);
  return NULL;
}

static void on_continue(int number) {
  (void)number;
  if (write(news[1], "c", 1) != 1) _exit(2);
}

static pid_t begin(void (*run)(void)) {
  if (pipe(news) != 0) exit(2);
  child = fork();
  if (child == 0) {
    run();
    _exit(5);
  }
  return child;
}

/// Returns the process state that others see.
static char state_of(pid_t pid) {
  char path[64], text[256] = "";
  snprintf(path, sizeof path, "/proc/%d/stat", pid);
  const int fd = open(path, O_RDONLY);
  if (fd < 0 || read(fd, text, sizeof text - 1) <= 0) return '?';
  close(fd);
  const char* behind = strrchr(text, ')');
  return behind == NULL ? '?' : behind[2];
}

static void await_stop(int number) {
  siginfo_t info;
  CHECK(waitid(P_PID, (id_t)child, &info, WSTOPPED | WNOWAIT) == 0);
  CHECK(info.si_code == CLD_STOPPED && info.si_status == number);
  int status = 0;
  CHECK(waitpid(child, &status, WUNTRACED) == child);
  CHECK(WIFSTOPPED(status) && WSTOPSIG(status) == number);
}

static void go_on(void) {
  kill(child, SIGCONT);
  int status = 0;
  CHECK(waitpid(child, &status, WCONTINUED) == child);
  CHECK(WIFCONTINUED(status));
}

static void end_child(void) {
  int status = 0;
  kill(child, SIGKILL);
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void stop_itself(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, be_busy, NULL);
  for (int i = 0; i < 150; ++i) raise(SIGSTOP);
}

static void itself(void) {
  begin(stop_itself);
  int status = 0;
  for (int i = 0; i < 150; ++i) {
    await_stop(SIGSTOP);
    kill(child, SIGCONT);
  }
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 5);
}

// A recorded thread may still leave translated code when its process's stop is told.
static void await_state_of_stop(void) {
  for (char state = '?'; state != 'T' && state != 't'; sched_yield()) {
    state = state_of(child);
    CHECK(state != '?' && state != 'Z' && state != 'X');
  }
}

static void run_three(void) {
  pthread_t thread;
  setpgid(0, 0);
  for (int i = 0; i < 2; ++i) pthread_create(&thread, NULL, be_busy, NULL);
  be_busy((void*)&work);
}

static void outside(void) {
  pid_t first = 0;
  begin(run_three);
  CHECK(read(news[0], &first, sizeof first) == sizeof first);
  const int numbers[] = {SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU};
  for (int i = 0; i < 40; ++i) {
    kill(child, numbers[i % 4]);
    await_stop(numbers[i % 4]);
    await_state_of_stop();
    go_on();
  }
  kill(child, SIGSTOP);
  await_stop(SIGSTOP);
  end_child();
}

static void run_thread(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, be_busy, (void*)&work);
  for (;;) pause();
}

static void one_thread(void) {
  pid_t busy = 0;
  begin(run_thread);
  CHECK(read(news[0], &busy, sizeof busy) == sizeof busy);
  for (int i = 0; i < 40; ++i) {
    CHECK(syscall(SYS_tgkill, child, i % 2 == 0 ? busy : child, SIGSTOP) == 0);
    await_stop(SIGSTOP);
    go_on();
  }
  end_child();
}

static void run_handler(void) {
  signal(SIGCONT, on_continue);
  on_continue(0);
  be_busy(NULL);
}

static void handler(void) {
  char byte = 0;
  begin(run_handler);
  CHECK(read(news[0], &byte, 1) == 1);
  for (int i = 0; i < 60; ++i) {
    kill(child, SIGSTOP);
    await_stop(SIGSTOP);
    kill(child, SIGCONT);
    CHECK(read(news[0], &byte, 1) == 1);
    // The child runs, and its SIGCONT needs no stop before it.
    kill(child, SIGCONT);
    CHECK(read(news[0], &byte, 1) == 1);
  }
  end_child();
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  alarm(100);
  if (strcmp(what, "itself") == 0) itself();
  if (strcmp(what, "outside") == 0) outside();
  if (strcmp(what, "thread") == 0) one_thread();
  if (strcmp(what, "handler") == 0) handler();
  printf("%s as ever\n", what);
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
