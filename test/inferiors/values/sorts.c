/* qsort, recursion and string functions; ends by a store to address 0. */
#include <stdlib.h>
#include <string.h>

#include "begin.h"

static int compare(const void* a, const void* b) {
  return *(const int*)a - *(const int*)b;
}

static int fibonacci(int n) {
  return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

struct node {
  int value;
  struct node *left, *right;
};

static struct node* insert(struct node* tree, int value) {
  if (tree == NULL) {
    tree = malloc(sizeof *tree);
    *tree = (struct node){value, NULL, NULL};
  } else if (value < tree->value) {
    tree->left = insert(tree->left, value);
  } else {
    tree->right = insert(tree->right, value);
  }
  return tree;
}

static int sum(const struct node* tree) {
  return tree == NULL ? 0 : tree->value + sum(tree->left) + sum(tree->right);
}

int main(void) {
  BEGIN();
  int numbers[100];
  unsigned seed = 1;
  struct node* tree = NULL;
  for (int i = 0; i < 100; i++) {
    seed = seed * 1103515245 + 12345;
    numbers[i] = (int)(seed >> 16);
    tree = insert(tree, numbers[i]);
  }
  qsort(numbers, 100, sizeof numbers[0], compare);
  int total = fibonacci(10) + sum(tree);
  char text[64] = "some words to look at";
  for (int i = 0; i < 10; i++) {
    char* copy = strdup(text);
    total += (int)strlen(copy) + (strchr(copy, 'k') != NULL) + memcmp(copy, text, 5);
    memmove(text + 1, text, 20);
    free(copy);
  }
  *(volatile int*)0 = total + numbers[3];
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
