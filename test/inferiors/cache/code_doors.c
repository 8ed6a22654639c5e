// Changes code without a store to it: through /proc/PID/mem by every call and every descriptor,
// through the file under its mapping, from other processes. Prints a line for each way; the exit
// status is the number of ways after which old code ran.

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

typedef int (*Function)(int);

enum { kPage = 4096, kCode = 11 };

// Makes a function that returns twice its argument plus VALUE.
static void make_code(unsigned char* at, int value) {
  static const unsigned char code[kCode] = {0x31, 0xc0, 0x8d, 0x04, 0x47, 0x05, 0, 0, 0, 0, 0xc3};
  memcpy(at, code, sizeof code);
  memcpy(at + 6, &value, sizeof value);
}

static long calls;
static int value = 100;
static int stale;
static unsigned char fresh[kCode];

static void next_code(void) {
  make_code(fresh, ++value);
}

static void run_often(unsigned char* code) {
  for (long i = 0; i < calls; ++i) (void)((Function)code)((int)(i & 7));
}

// `done`: the write succeeded. If the kernel refused it, the old code must still be there.
static void look(const char* kind, const char* way, unsigned char* code, int done) {
  static int last;
  const int now = ((Function)code)(0);
  const int right = done ? now == value : now == last || now != value;
  if (!right) ++stale;
  if (!right) printf("%s %s: %d instead of %d\n", kind, way, now, value);
  last = now;
}

static unsigned char* page(int protection) {
  unsigned char* at = mmap(NULL, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  make_code(at, 7);
  mprotect(at, kPage, protection);
  run_often(at);
  return at;
}

static int pass_through_socket(int fd) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return -1;
  char byte = 'x';
  char control[CMSG_SPACE(sizeof(int))];
  struct iovec data = {&byte, 1};
  struct msghdr message = {
      .msg_iov = &data, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
  struct cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  memcpy(CMSG_DATA(header), &fd, sizeof fd);
  sendmsg(ends[0], &message, 0);
  message.msg_controllen = sizeof control;
  recvmsg(ends[1], &message, 0);
  int received = -1;
  memcpy(&received, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof received);
  close(ends[0]);
  close(ends[1]);
  return received;
}

static int put(int fd, unsigned char* code) {
  next_code();
  return pwrite(fd, fresh, kCode, (off_t)code) == kCode;
}

static int put_by_path(const char* path, unsigned char* code) {
  const int fd = open(path, O_RDWR | O_CLOEXEC);
  const int done = put(fd, code);
  close(fd);
  return done;
}

static int ended_well(pid_t child) {
  int status = -1;
  waitpid(child, &status, 0);
  return status == 0;
}

static void* put_from_thread(void* code) {
  char path[64];
  snprintf(path, sizeof path, "/proc/self/task/%d/mem", (int)gettid());
  return put_by_path(path, code) ? code : NULL;
}

static void by_each_call(const char* kind, int fd, unsigned char* code) {
  const off_t at = (off_t)code;
  const struct iovec parts[2] = {{fresh, 6}, {fresh + 6, kCode - 6}};
  look(kind, "pwrite", code, put(fd, code));
  next_code();
  lseek(fd, at, SEEK_SET);
  look(kind, "write", code, write(fd, fresh, kCode) == kCode);
  next_code();
  lseek(fd, at, SEEK_SET);
  look(kind, "writev", code, writev(fd, parts, 2) == kCode);
  next_code();
  look(kind, "pwritev", code, pwritev(fd, parts, 2, at) == kCode);
  next_code();
  look(kind, "pwritev2", code, pwritev2(fd, parts, 2, at, 0) == kCode);
  next_code();
  lseek(fd, at, SEEK_SET);
  look(kind, "pwritev2 at the position", code, pwritev2(fd, parts, 2, -1, 0) == kCode);
  next_code();
  look(kind, "syscall(3)", code, syscall(SYS_pwrite64, fd, fresh, kCode, code) == kCode);
  int pipes[2];
  loff_t offset = at;
  if (pipe(pipes) != 0) return;
  next_code();
  if (write(pipes[1], fresh, kCode) != kCode) return;
  look(kind, "splice", code, splice(pipes[0], NULL, fd, &offset, kCode, 0) == kCode);
  close(pipes[0]);
  close(pipes[1]);
  const struct iovec local = {fresh, kCode};
  const struct iovec remote = {code, kCode};
  next_code();
  look(kind, "process_vm_writev", code,
       process_vm_writev(getpid(), &local, 1, &remote, 1, 0) == kCode);
}

static void by_each_descriptor(const char* kind, int fd, unsigned char* code) {
  int other = dup(fd);
  look(kind, "dup", code, put(other, code));
  close(other);
  other = fcntl(fd, F_DUPFD, 300);
  look(kind, "F_DUPFD", code, put(other, code));
  close(other);
  other = pass_through_socket(fd);
  look(kind, "SCM_RIGHTS", code, put(other, code));
  close(other);
  look(kind, "/proc/thread-self/mem", code, put_by_path("/proc/thread-self/mem", code));
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  look(kind, "/proc/self/fd", code, put_by_path(path, code));
  const int folder = open("/proc", O_PATH);
  other = openat(folder, "self/mem", O_WRONLY);
  look(kind, "openat", code, put(other, code));
  close(other);
  close(folder);
  other = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/mem", O_RDWR);
  look(kind, "openat by syscall(3)", code, put(other, code));
  close(other);
  pthread_t thread;
  void* done = NULL;
  pthread_create(&thread, NULL, put_from_thread, code);
  pthread_join(thread, &done);
  look(kind, "/proc/self/task/TID/mem", code, done != NULL);
}

static void by_each_process(const char* kind, int fd, unsigned char* code) {
  next_code();
  pid_t child = fork();
  if (child == 0) _exit(pwrite(fd, fresh, kCode, (off_t)code) == kCode ? 0 : 1);
  look(kind, "a child's inherited descriptor", code, ended_well(child));
  next_code();
  child = fork();
  if (child == 0) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/mem", (int)getppid());
    const int own = open(path, O_RDWR);
    _exit(pwrite(own, fresh, kCode, (off_t)code) == kCode ? 0 : 1);
  }
  look(kind, "a child's own descriptor", code, ended_well(child));
}

static void through_memory(void) {
  const char* kinds[] = {"r-x", "rwx"};
  unsigned char* pages[] = {page(PROT_READ | PROT_EXEC), page(PROT_READ | PROT_WRITE | PROT_EXEC)};
  const int fd = open("/proc/self/mem", O_RDWR);
  if (fd < 0) return;
  for (int i = 0; i < 2; ++i) {
    by_each_call(kinds[i], fd, pages[i]);
    by_each_descriptor(kinds[i], fd, pages[i]);
    by_each_process(kinds[i], fd, pages[i]);
  }
  close(fd);
}

// `kind`: a file of a file system, a memory file, or a file that is opened for writing later.
static void through_file(int kind) {
  static const char* names[] = {"file", "memfd", "file opened later"};
  char path[] = "/tmp/code_doors_XXXXXX";
  unsigned char whole[kPage] = {0};
  make_code(whole, 7);
  int fd = kind == 1 ? memfd_create("code", 0) : mkstemp(path);
  if (write(fd, whole, kPage) != kPage) exit(2);
  int mapped = fd;
  if (kind == 2) {
    close(fd);
    mapped = open(path, O_RDONLY);
  }
  unsigned char* code = mmap(NULL, kPage, PROT_READ | PROT_EXEC, MAP_PRIVATE, mapped, 0);
  run_often(code);
  if (kind == 2) fd = open(path, O_RDWR);
  next_code();
  look(names[kind], "pwrite", code, pwrite(fd, fresh, kCode, 0) == kCode);
  run_often(code);
  unsigned char* shared = mmap(NULL, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  next_code();
  memcpy(shared, fresh, kCode);
  look(names[kind], "a store to a shared mapping", code, 1);
  run_often(code);
  next_code();
  const pid_t child = fork();
  if (child == 0) _exit(pwrite(fd, fresh, kCode, 0) == kCode ? 0 : 1);
  look(names[kind], "a child's write", code, ended_well(child));
  if (kind != 1) unlink(path);
}

int main(int count, char** arguments) {
  calls = count > 1 ? atol(arguments[1]) : 1;
  through_memory();
  for (int kind = 0; kind < 3; ++kind) through_file(kind);
  printf("%d ways lead to new code, %d to old\n", value - 100 - stale, stale);
  return stale < 100 ? stale : 100;
}
