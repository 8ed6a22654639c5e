// Names that are HTML markup if a page does not escape them.
int* volatile nowhere;
volatile int sink;

#line 1 "/tmp/<img src=x onerror=alert(2)>.c"
__attribute__((noinline)) void evil(void) __asm__(
    "\"</script><img src=x onerror=document.body.dataset.state='taken'>\"");
void evil(void) {
  sink = *nowhere;
}

__attribute__((always_inline)) inline void hidden(void) __asm__(
    "\"</script><img src=y onerror=document.body.dataset.state='taken'>\"");
inline void hidden(void) {
  sink = 1;
}

int main(void) {
  hidden();
  evil();
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
