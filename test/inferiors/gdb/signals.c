// Sends itself signals and counts those that arrive.
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

volatile int usr1, usr2, alarms, values;

void on_usr1(int number) {
  (void)number;
  ++usr1;
}
void on_usr2(int number) {
  (void)number;
  ++usr2;
}
void on_alarm(int number) {
  (void)number;
  ++alarms;
}
void on_value(int number, siginfo_t* info, void* context) {
  (void)number;
  (void)context;
  values += info->si_value.sival_int;
}

void send_value(int value) {
  union sigval v = {.sival_int = value};
  sigqueue(getpid(), SIGRTMIN, v);
}

int main(void) {
  signal(SIGUSR1, on_usr1);
  signal(SIGUSR2, on_usr2);
  signal(SIGALRM, on_alarm);
  struct sigaction action = {.sa_sigaction = on_value, .sa_flags = SA_SIGINFO};
  sigaction(SIGRTMIN, &action, NULL);

  raise(SIGUSR1);
  raise(SIGUSR2);
  raise(SIGALRM);
  send_value(42);
  raise(SIGUSR1);
  printf("usr1 %d usr2 %d alarms %d values %d\n", usr1, usr2, alarms, values);
  fflush(stdout);
  return usr1 * 10 + usr2;
}

// SPDX-License-Identifier: Apache-2.0
