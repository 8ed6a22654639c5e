// Job control from a parent's view: prints waitid()'s results for a child, and SIGCHLD. A test
// compares the output with and without a tracer.
//   vfork    child and parent are stopped between vfork and exec
//   exec     stopped before, during and after many execs
//   threads  stopped while threads are born and end, one of which executes another program
//   orphan   a stopped job loses its shell
//   terminal background jobs read and write, a key stops the foreground job
//   calls    stopped in system calls that wait
//   masks    SIGCONT and SIGTSTP blocked, ignored and waited for
//   ends     stopped jobs are ended
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

static const char* self;
static int to_parent[2];
static int to_child[2];

static void fail(int line) {
  printf("line %d: %s\n", line, strerror(errno));
  fflush(stdout);
  exit(1);
}

#define NEED(ok)               \
  do {                         \
    if (!(ok)) fail(__LINE__); \
  } while (0)

static void say(const char* text) {
  printf("%s\n", text);
  fflush(stdout);
}

static void open_pipes(void) {
  NEED(pipe(to_parent) == 0 && pipe(to_child) == 0);
}

static void tell(int fd, char what) {
  NEED(write(fd, &what, 1) == 1);
}

static char hear(int fd) {
  char what = 0;
  ssize_t got = 0;
  do {
    got = read(fd, &what, 1);
  } while (got < 0 && errno == EINTR);
  return got == 1 ? what : '-';
}

// Prints one change of the child's state; "none" if there is none.
static int await(pid_t child, int which) {
  siginfo_t info = {0};
  if (waitid(P_PID, (id_t)child, &info, which) != 0) {
    printf("none: %s\n", strerror(errno));
    fflush(stdout);
    return 0;
  }
  static const char* codes[] = {"?",       "exited",  "killed",   "dumped",
                                "trapped", "stopped", "continued"};
  const int code = info.si_code >= 0 && info.si_code <= 6 ? info.si_code : 0;
  printf("%s %d\n", codes[code], info.si_status);
  fflush(stdout);
  return code;
}

static void await_any(pid_t child) {
  await(child, WEXITED | WSTOPPED | WCONTINUED);
}

static void await_nothing(pid_t child) {
  siginfo_t info = {0};
  const int done = waitid(P_PID, (id_t)child, &info, WEXITED | WSTOPPED | WCONTINUED | WNOHANG);
  if (done != 0 || info.si_pid != 0) printf("more: %d %d\n", info.si_code, info.si_status);
  fflush(stdout);
}

static char state_of(pid_t pid) {
  char path[64], text[512] = "";
  snprintf(path, sizeof path, "/proc/%d/stat", pid);
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return '?';
  const ssize_t got = read(fd, text, sizeof text - 1);
  close(fd);
  const char* behind = got > 0 ? strrchr(text, ')') : NULL;
  return behind == NULL ? '?' : behind[2];
}

static void nap(void) {
  const struct timespec time = {0, 1000000};
  nanosleep(&time, NULL);
}

static void stop_and_go_on(pid_t child, int signal) {
  kill(child, signal);
  await_any(child);
  await_nothing(child);
  kill(child, SIGCONT);
  await_any(child);
  await_nothing(child);
}

static void end(pid_t child) {
  kill(child, SIGKILL);
  await_any(child);
}

// ---------------------------------------------------------------------------------------------

static void be_vfork_parent(void) {
  const pid_t child = vfork();
  if (child == 0) {
    const pid_t id = getpid();
    if (write(to_parent[1], &id, sizeof id) != sizeof id) _exit(9);
    raise(SIGSTOP);
    execl(self, self, "leave", "7", NULL);
    _exit(9);
  }
  int status = 0;
  NEED(waitpid(child, &status, WUNTRACED) == child);
  hear(to_child[0]);
  printf("child of vfork: %x\n", status);
  fflush(stdout);
  exit(3);
}

static void by_vfork(void) {
  for (int i = 0; i < 6; ++i) {
    open_pipes();
    const pid_t child = fork();
    if (child == 0) be_vfork_parent();
    pid_t grandchild = 0;
    NEED(read(to_parent[0], &grandchild, sizeof grandchild) == sizeof grandchild);
    await_nothing(child);
    if (i % 2 == 1) kill(child, SIGSTOP);
    if (i == 3) kill(child, SIGCONT);
    // Whether it has stopped by now, only its parent could know, which waits for it.
    while (strchr("Z?", state_of(grandchild)) == NULL) {
      kill(grandchild, SIGCONT);
      nap();
    }
    if (i % 2 == 1 && i != 3) {
      await_any(child);
      await_nothing(child);
      kill(child, SIGCONT);
      await_any(child);
    }
    tell(to_child[1], 'x');
    await(child, WEXITED);
  }
}

static void run_again(int left) {
  char number[16];
  snprintf(number, sizeof number, "%d", left - 1);
  execl(self, self, "again", number, NULL);
  _exit(9);
}

static void by_exec(void) {
  const pid_t child = fork();
  if (child == 0) run_again(1000000);
  const int signals[] = {SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU};
  setpgid(child, child);
  for (int i = 0; i < 40; ++i) stop_and_go_on(child, signals[i % 4]);
  end(child);
}

static void* return_at_once(void* argument) {
  return argument;
}

static void* run_another(void* unused) {
  (void)unused;
  char number[16];
  snprintf(number, sizeof number, "%d", to_parent[1]);
  execl(self, self, "pause", number, NULL);
  return NULL;
}

static void make_threads(void) {
  tell(to_parent[1], 'r');
  for (;;) {
    pthread_t threads[4];
    for (int i = 0; i < 4; ++i) pthread_create(&threads[i], NULL, return_at_once, NULL);
    for (int i = 0; i < 4; ++i) pthread_join(threads[i], NULL);
  }
}

static void by_threads(void) {
  open_pipes();
  pid_t child = fork();
  if (child == 0) make_threads();
  hear(to_parent[0]);
  for (int i = 0; i < 30; ++i) stop_and_go_on(child, SIGSTOP);
  end(child);
  for (int i = 0; i < 5; ++i) {
    child = fork();
    if (child == 0) {
      pthread_t thread;
      pthread_create(&thread, NULL, run_another, NULL);
      for (;;) pause();
    }
    hear(to_parent[0]);
    for (int j = 0; j < 4; ++j) stop_and_go_on(child, SIGSTOP);
    end(child);
  }
  // The first thread ends before the others.
  child = fork();
  if (child == 0) {
    pthread_t thread;
    pthread_create(&thread, NULL, (void* (*)(void*))(void*)make_threads, NULL);
    pthread_exit(NULL);
  }
  hear(to_parent[0]);
  for (int i = 0; i < 10; ++i) stop_and_go_on(child, SIGSTOP);
  end(child);
}

// ---------------------------------------------------------------------------------------------

static void on_signal(int signal) {
  tell(to_parent[1], (char)('A' + signal));
}

static void handle(int signal) {
  struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
  sigaction(signal, &action, NULL);
}

static void be_job(int handles) {
  setpgid(0, 0);
  if (handles) handle(SIGHUP);
  if (handles) handle(SIGCONT);
  raise(SIGTSTP);
  // In an orphaned process group, only SIGSTOP stops; the other stop signals have no effect.
  raise(SIGTSTP);
  raise(SIGTTIN);
  raise(SIGTTOU);
  tell(to_parent[1], 'd');
  raise(SIGSTOP);
  tell(to_parent[1], 'e');
  _exit(0);
}

static void by_orphan(void) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  setpgid(0, 0);
  for (int i = 0; i < 4; ++i) {
    open_pipes();
    const pid_t shell = fork();
    if (shell == 0) {
      setsid();
      const pid_t job = fork();
      if (job == 0) be_job(i % 2 == 0);
      int status = 0;
      NEED(waitpid(job, &status, WUNTRACED) == job && WIFSTOPPED(status));
      NEED(write(to_parent[1], &job, sizeof job) == sizeof job);
      hear(to_child[0]);
      _exit(1);
    }
    // If the shell dies, its pipe ends instead of blocking this process.
    close(to_parent[1]);
    pid_t job = 0;
    if (read(to_parent[0], &job, sizeof job) != sizeof job) {
      await(shell, WEXITED);
      fail(__LINE__);
    }
    tell(to_child[1], 'x');
    await(shell, WEXITED);
    // Without a handler, SIGHUP ends the job.
    if (i % 2 == 1) {
      await(job, WEXITED);
      continue;
    }
    char heard[4] = {hear(to_parent[0]), hear(to_parent[0]), hear(to_parent[0]), 0};
    if (heard[0] > heard[1]) heard[3] = heard[0], heard[0] = heard[1], heard[1] = heard[3];
    heard[3] = 0;
    say(heard);
    await(job, WSTOPPED);
    kill(job, SIGCONT);
    heard[0] = hear(to_parent[0]);
    heard[1] = hear(to_parent[0]);
    heard[2] = 0;
    say(heard);
    await(job, WEXITED);
  }
}

// ---------------------------------------------------------------------------------------------

static void take_terminal(int fd, pid_t group) {
  sigset_t set, old;
  sigemptyset(&set);
  sigaddset(&set, SIGTTOU);
  sigprocmask(SIG_BLOCK, &set, &old);
  NEED(tcsetpgrp(fd, group) == 0);
  sigprocmask(SIG_SETMASK, &old, NULL);
}

static void be_reader(int terminal, pid_t unused) {
  (void)unused;
  char line[16] = "";
  const ssize_t got = read(terminal, line, sizeof line - 1);
  _exit(got == 3 && strcmp(line, "hi\n") == 0 ? 11 : 12);
}

static void be_writer(int terminal, pid_t unused) {
  (void)unused;
  const int done = write(terminal, "text", 4) == 4;
  hear(to_child[0]);
  _exit(done ? 21 : 22);
}

static void be_setter(int terminal, pid_t unused) {
  (void)unused;
  struct termios settings;
  tcgetattr(terminal, &settings);
  const int done = tcsetattr(terminal, TCSANOW, &settings) == 0;
  hear(to_child[0]);
  _exit(done ? 31 : 32);
}

static void be_sleeper(int terminal, pid_t unused) {
  (void)terminal;
  (void)unused;
  for (;;) pause();
}

static pid_t begin_job(int terminal, void (*run)(int, pid_t)) {
  const pid_t job = fork();
  if (job == 0) {
    setpgid(0, 0);
    run(terminal, 0);
  }
  setpgid(job, job);
  return job;
}

static void put_in_front(int terminal, pid_t job) {
  take_terminal(terminal, job);
  kill(-job, SIGCONT);
  await(job, WCONTINUED);
}

static void be_shell(int master, const char* name) {
  setsid();
  const int terminal = open(name, O_RDWR);
  NEED(terminal >= 0);
  ioctl(terminal, TIOCSCTTY, 0);
  struct termios settings;
  tcgetattr(terminal, &settings);
  settings.c_lflag |= TOSTOP;
  settings.c_lflag &= ~(tcflag_t)ECHO;
  tcsetattr(terminal, TCSANOW, &settings);
  take_terminal(terminal, getpgrp());
  pid_t job = begin_job(terminal, be_reader);
  await(job, WSTOPPED | WEXITED);
  put_in_front(terminal, job);
  NEED(write(master, "hi\n", 3) == 3);
  await(job, WEXITED | WSTOPPED);
  take_terminal(terminal, getpgrp());
  void (*const kinds[])(int, pid_t) = {be_writer, be_setter};
  for (int i = 0; i < 2; ++i) {
    job = begin_job(terminal, kinds[i]);
    await(job, WSTOPPED | WEXITED);
    put_in_front(terminal, job);
    tell(to_child[1], 'x');
    await(job, WEXITED | WSTOPPED);
    take_terminal(terminal, getpgrp());
  }
  job = begin_job(terminal, be_sleeper);
  take_terminal(terminal, job);
  for (int i = 0; i < 5; ++i) {
    NEED(write(master, "\x1a", 1) == 1);
    await(job, WSTOPPED | WEXITED);
    take_terminal(terminal, getpgrp());
    put_in_front(terminal, job);
  }
  NEED(write(master, "\x03", 1) == 1);
  await(job, WEXITED | WSTOPPED);
  exit(0);
}

static void by_terminal(void) {
  const int master = posix_openpt(O_RDWR | O_NOCTTY);
  NEED(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
  open_pipes();
  const pid_t shell = fork();
  if (shell == 0) be_shell(master, ptsname(master));
  await(shell, WEXITED);
}

// ---------------------------------------------------------------------------------------------

static const char* named(long result) {
  return result >= 0 ? "done" : strerror(errno);
}

static long wait_in(int which) {
  static int word;
  static struct epoll_event event;
  const struct timespec time = {0, 300000000};
  struct timespec left = {0, 0};
  struct pollfd none = {-1, 0, 0};
  struct timeval value = {0, 300000};
  struct sembuf operation = {0, -1, 0};
  sigset_t set;
  switch (which) {
    case 0:
      return nanosleep(&time, &left);
    case 1:
      return poll(&none, 1, 300);
    case 2:
      return epoll_wait(epoll_create1(0), &event, 1, 300);
    case 3:
      return select(0, NULL, NULL, NULL, &value);
    case 4:
      return syscall(SYS_futex, &word, FUTEX_WAIT, 0, &time, NULL, 0);
    case 5:
      return semtimedop(semget(IPC_PRIVATE, 1, 0600), &operation, 1, &time);
    case 6:
      sigemptyset(&set);
      sigaddset(&set, SIGUSR1);
      return sigtimedwait(&set, NULL, &time);
    case 7:
      return clock_nanosleep(CLOCK_MONOTONIC, 0, &time, &left);
    default:
      return ppoll(&none, 1, &time, NULL);
  }
}

static const long kCalls[] = {SYS_clock_nanosleep,
                              SYS_poll,
                              SYS_epoll_wait,
                              SYS_select,
                              SYS_futex,
                              SYS_semtimedop,
                              SYS_rt_sigtimedwait,
                              SYS_clock_nanosleep,
                              SYS_ppoll};

static void by_calls(void) {
  open_pipes();
  for (int which = 0; which < 9; ++which) {
    const pid_t child = fork();
    if (child == 0) {
      const long result = wait_in(which);
      const char* how = named(result);
      hear(to_child[0]);
      printf("call %d: %s\n", which, how);
      fflush(stdout);
      _exit(0);
    }
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/syscall", child);
    // The kernel may show select() as pselect6().
    for (;;) {
      char text[64] = "";
      const int fd = open(path, O_RDONLY | O_CLOEXEC);
      if (fd < 0 || read(fd, text, sizeof text - 1) <= 0) fail(__LINE__);
      close(fd);
      const long number = atol(text);
      if (number == kCalls[which] || (which == 3 && number == SYS_pselect6)) break;
      nap();
    }
    stop_and_go_on(child, SIGSTOP);
    tell(to_child[1], 'x');
    await_any(child);
  }
}

static void be_masked(void) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCONT);
  sigaddset(&set, SIGTSTP);
  sigprocmask(SIG_BLOCK, &set, NULL);
  tell(to_parent[1], 'b');
  for (int i = 0; i < 3; ++i) {
    int got = 0;
    sigwait(&set, &got);
    tell(to_parent[1], (char)('A' + got));
  }
  signal(SIGTSTP, SIG_IGN);
  sigprocmask(SIG_UNBLOCK, &set, NULL);
  raise(SIGTSTP);
  tell(to_parent[1], 'i');
  signal(SIGTSTP, SIG_DFL);
  raise(SIGTSTP);
  hear(to_child[0]);
  tell(to_parent[1], 's');
  // SIGCONT discards pending stop signals, and a stop signal discards a pending SIGCONT.
  sigprocmask(SIG_BLOCK, &set, NULL);
  raise(SIGTSTP);
  raise(SIGCONT);
  sigset_t waiting;
  sigpending(&waiting);
  tell(to_parent[1],
       (char)('0' + sigismember(&waiting, SIGTSTP) + 2 * sigismember(&waiting, SIGCONT)));
  raise(SIGTSTP);
  sigpending(&waiting);
  tell(to_parent[1],
       (char)('0' + sigismember(&waiting, SIGTSTP) + 2 * sigismember(&waiting, SIGCONT)));
  sigprocmask(SIG_UNBLOCK, &set, NULL);
  hear(to_child[0]);
  _exit(4);
}

static void say_heard(void) {
  const char text[2] = {hear(to_parent[0]), 0};
  say(text);
}

static void by_masks(void) {
  open_pipes();
  const pid_t child = fork();
  if (child == 0) be_masked();
  say_heard();
  kill(child, SIGTSTP);  // received by sigwait()
  say_heard();
  await_nothing(child);
  kill(child, SIGSTOP);
  await_any(child);
  kill(child, SIGCONT);  // continues the child, and is received by sigwait()
  await_any(child);
  say_heard();
  kill(child, SIGCONT);
  say_heard();
  say_heard();
  await(child, WSTOPPED);
  kill(child, SIGCONT);
  await(child, WCONTINUED);
  tell(to_child[1], 'x');
  say_heard();
  say_heard();
  say_heard();
  await(child, WSTOPPED);
  kill(child, SIGCONT);
  await(child, WCONTINUED);
  tell(to_child[1], 'x');
  await(child, WEXITED);
}

static volatile sig_atomic_t children;
static volatile sig_atomic_t codes[8];
static void on_child(int number, siginfo_t* info, void* context) {
  (void)number;
  (void)context;
  ++children;
  ++codes[info->si_code & 7];
}

static void by_ends(void) {
  struct sigaction action = {.sa_sigaction = on_child, .sa_flags = SA_SIGINFO | SA_RESTART};
  sigaction(SIGCHLD, &action, NULL);
  const int ends[] = {SIGKILL, SIGTERM, SIGINT};
  for (int i = 0; i < 3; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      for (;;) pause();
    }
    kill(child, SIGSTOP);
    await_any(child);
    kill(child, ends[i]);
    if (i > 0) {
      await_nothing(child);  // the child waits for SIGCONT
      kill(child, SIGCONT);
    }
    await(child, WEXITED);
  }
  printf("told of %d stops\n", codes[CLD_STOPPED]);
  action.sa_flags |= SA_NOCLDSTOP;
  sigaction(SIGCHLD, &action, NULL);
  const int before = children;
  const pid_t child = fork();
  if (child == 0) {
    for (;;) pause();
  }
  stop_and_go_on(child, SIGSTOP);
  printf("told of %d\n", children - before);
  end(child);
  printf("told of %d\n", children - before);
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  self = argv[0];
  if (strcmp(what, "leave") == 0) return atoi(argv[2]);
  if (strcmp(what, "again") == 0) run_again(atoi(argv[2]));
  if (strcmp(what, "pause") == 0) {
    tell(atoi(argv[2]), 'p');
    for (;;) pause();
  }
  alarm(100);
  if (strcmp(what, "vfork") == 0) by_vfork();
  if (strcmp(what, "exec") == 0) by_exec();
  if (strcmp(what, "threads") == 0) by_threads();
  if (strcmp(what, "orphan") == 0) by_orphan();
  if (strcmp(what, "terminal") == 0) by_terminal();
  if (strcmp(what, "calls") == 0) by_calls();
  if (strcmp(what, "masks") == 0) by_masks();
  if (strcmp(what, "ends") == 0) by_ends();
  say("done");
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
