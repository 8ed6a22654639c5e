// SPDX-License-Identifier: Apache-2.0
// The second file of globals.cpp.
int in_other = 3;
[[gnu::used]] static int in_both = 4;
[[gnu::used]] static int only_there = 5;

void set_others(int value) {
  in_both = value + 60;
  only_there = value + 70;
  in_other = value + in_both + only_there;
}
