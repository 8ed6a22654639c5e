// SPDX-License-Identifier: Apache-2.0
/* Prints the values of its variables, then dies. Lines: FUNCTION/N VARIABLE VALUE, where N counts
 * the function's frames from the innermost one. The values are written as in reports. stack in a
 * function with several callers handler     in a signal handler wild        with a call through a
 * wild pointer smashed     at the return of a function whose return address was overwritten deep of
 * a stack overflow */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum colour { RED, GREEN = 5, BLUE };
typedef unsigned long counter;

struct point {
  int x;
  int y;
};
struct node {
  struct node* next;
  const char* name;
  struct point at;
  unsigned flag : 3;
  int rest : 5;
  enum colour colour;
};

static char* volatile nowhere;
static volatile int taken;

static void say(const char* frame, const char* name, const char* value) {
  printf("%s %s %s\n", frame, name, value);
}
#define SAY(frame, name, form, ...)                 \
  do {                                              \
    char text[256];                                 \
    snprintf(text, sizeof text, form, __VA_ARGS__); \
    say(frame, name, text);                         \
  } while (0)

static void say_node(const char* frame, const char* name, const struct node* node) {
  SAY(frame, name, "{next=0x%lx, name=0x%lx \"%s\", at={x=%d, y=%d}, flag=%u, rest=%d, colour=%s}",
      (unsigned long)node->next, (unsigned long)node->name, node->name, node->at.x, node->at.y,
      node->flag, node->rest,
      node->colour == RED     ? "RED"
      : node->colour == GREEN ? "GREEN"
                              : "BLUE");
}

__attribute__((noinline)) static int innermost(int count, counter sum, struct node* node,
                                               struct point where, double half) {
  char text[32] = "a \"word\"\n";
  int numbers[4] = {1, 2, 3, count};
  float quarter = (float)half / 2;
  unsigned char letter = (unsigned char)('a' + count);
  _Bool yes = count > 0;
  char* last = nowhere;
  sum += (counter)numbers[1];
  SAY("innermost/0", "count", "%d", count);
  SAY("innermost/0", "sum", "%lu", sum);
  SAY("innermost/0", "node", "0x%lx", (unsigned long)node);
  SAY("innermost/0", "where", "{x=%d, y=%d}", where.x, where.y);
  SAY("innermost/0", "half", "%g", half);
  SAY("innermost/0", "text", "\"%s\"", "a \\\"word\\\"\\n");
  SAY("innermost/0", "numbers", "{%d, %d, %d, %d}", numbers[0], numbers[1], numbers[2], numbers[3]);
  SAY("innermost/0", "quarter", "%g", (double)quarter);
  SAY("innermost/0", "letter", "%d '%c'", letter, letter);
  SAY("innermost/0", "yes", "%s", yes ? "true" : "false");
  SAY("innermost/0", "last", "0x%lx", (unsigned long)last);
  fflush(stdout);
  *last = text[taken];
  return numbers[taken] + (int)sum + (int)quarter + letter + yes + where.x;
}

__attribute__((noinline)) static int walk(int depth, struct node* outer) {
  char frame[16];
  struct node here = {outer, depth % 2 ? "odd" : "even", {depth, -depth}, 5, -3, BLUE};
  int result;
  snprintf(frame, sizeof frame, "walk/%d", depth % 10);
  SAY(frame, "depth", "%d", depth);
  SAY(frame, "outer", "0x%lx", (unsigned long)outer);
  say_node(frame, "here", &here);
  if (depth == 0) {
    result = innermost(2, 40, &here, here.at, 0.5);
  } else {
    result = walk(depth - 1, &here);
  }
  return result + here.at.x + taken;
}

static void handle(int signal) {
  int own = signal + 1;
  SAY("handle/0", "signal", "%d", signal);
  SAY("handle/0", "own", "%d", own);
  fflush(stdout);
  *nowhere = (char)own;
  taken = own;
}

__attribute__((noinline)) static int interrupted(int left, const char* word) {
  long square = (long)left * left;
  SAY("interrupted/0", "left", "%d", left);
  SAY("interrupted/0", "word", "0x%lx \"%s\"", (unsigned long)word, word);
  SAY("interrupted/0", "square", "%ld", square);
  raise(SIGUSR1);
  return left + (int)square + (int)strlen(word) + taken;
}

__attribute__((noinline)) static int wild(int first, int second) {
  int (*call)(int) = (int (*)(int))(unsigned long)(0x123450000UL + (unsigned)taken);
  int both = first + second;
  SAY("wild/0", "first", "%d", first);
  SAY("wild/0", "second", "%d", second);
  SAY("wild/0", "both", "%d", both);
  fflush(stdout);
  return call(first) + both + second;
}

__attribute__((noinline)) static int smashed(long* place, int kept) {
  long* volatile at = (long*)__builtin_frame_address(0);
  SAY("smashed/0", "kept", "%d", kept);
  fflush(stdout);
  at[1] = 0x1234567;
  return (int)*place + kept;
}

__attribute__((noinline)) static int deep(int level, int salt) {
  volatile char room[4000];
  room[level % 4000] = (char)salt;
  return deep(level + 1, salt) + room[0] + level;
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "stack";
  struct node root = {NULL, "root", {7, 8}, 1, 2, GREEN};
  long big = -5000000000;
  SAY("main/0", "argc", "%d", argc);
  SAY("main/0", "argv", "0x%lx", (unsigned long)argv);
  SAY("main/0", "mode", "0x%lx \"%s\"", (unsigned long)mode, mode);
  SAY("main/0", "big", "%ld", big);
  say_node("main/0", "root", &root);
  if (strcmp(mode, "handler") == 0) {
    signal(SIGUSR1, handle);
    taken += interrupted(9, "nine");
  }
  if (strcmp(mode, "wild") == 0) taken += wild(3, 4);
  if (strcmp(mode, "smashed") == 0) taken += smashed(&big, 77);
  if (strcmp(mode, "deep") == 0) {
    fflush(stdout);
    taken += deep(0, 12345);
  }
  return walk(2, &root) + (int)big + taken;
}
