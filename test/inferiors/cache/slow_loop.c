/* Branches for ever, but so seldom that no log is ever full: each turn writes much memory by one
 * instruction. No system call either. */
static char room[16 << 20];
static volatile unsigned turns;

void __attribute__((noinline)) turn(void) {
  ++turns;
}

int main(void) {
  for (;;) {
    char* at = room;
    unsigned long count = sizeof room;
    __asm__ volatile("rep stosb" : "+D"(at), "+c"(count) : "a"(turns) : "memory");
    turn();
  }
}
