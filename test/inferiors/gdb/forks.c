// forks [fork|vfork|exec PROGRAM]: makes a child, or becomes another program.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

volatile int child_value;

void in_child(void) {
  child_value = 1;
}
void in_parent(int status) {
  printf("child ended with %d\n", status);
}
void before_exec(void) {}
void before_and_in_vfork(void) {}

static int wait_for(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  in_parent(WEXITSTATUS(status));
  fflush(stdout);
  return 0;
}

int main(int argc, char** argv) {
  const char* how = argc > 1 ? argv[1] : "fork";
  if (strcmp(how, "exec") == 0) {
    before_exec();
    execv(argv[2], argv + 2);
    return 99;
  }
  if (strcmp(how, "vfork") == 0) {
    before_and_in_vfork();
    pid_t child = vfork();
    if (child == 0) {
      before_and_in_vfork();
      _exit(5);
    }
    return wait_for(child);
  }
  pid_t child = fork();
  if (child == 0) {
    in_child();
    _exit(5);
  }
  return wait_for(child);
}

// SPDX-License-Identifier: Apache-2.0
