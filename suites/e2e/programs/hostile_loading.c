// SPDX-License-Identifier: MIT
// hostile_loading.c: programs that load the driver in unusual ways, unload it, or let it go after everything else.
// Usage   hostile_loading MODE [loses]      the modes are told in suites/e2e/hostile_rows.h, the story in hostile_story.h
//
// With OWN_GETENV the executable has a getenv of its own that knows no variable, and every library of the process gets it.
// As a library (STORY_LIBRARY) it is the story alone, for the programs that load it.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "hostile_story.h"

typedef int (*Story)(int loses_it);

#ifdef STORY_LIBRARY
int tell_story(int loses_it) {
  loses = loses_it;
  return whole_story();
}
#else

#ifdef OWN_GETENV
char *getenv(const char *name) {
  (void)name;
  return NULL;
}
#endif

enum { kRounds = 3 };

static int late;

__attribute__((destructor)) static void release_last(void) {
  if (late) give_back();
}

static void *library(const char *program, int own_namespace) {
  char path[4096];
  snprintf(path, sizeof(path), "%.*slibhostile_story.so", (int)(strrchr(program, '/') + 1 - program), program);
  return own_namespace ? dlmopen(LM_ID_NEWLM, path, RTLD_NOW) : dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

/* The driver comes and goes with the library that uses it. */
static int load_and_unload(const char *program, int own_namespace) {
  int round, status = 0;
  for (round = 0; round < kRounds && status == 0; ++round) {
    void *const loaded = library(program, own_namespace);
    const Story story = loaded == NULL ? NULL : (Story)dlsym(loaded, "tell_story");
    if (story == NULL) {
      fprintf(stderr, "%s\n", dlerror());
      return 9;
    }
    status = story(loses);
    dlclose(loaded);
  }
  return status;
}

/* Nothing in the second program's environment leads to the drop-in: it finds a driver that is none of cuaudit's. */
static int execute_bare(char *program) {
  char path[4096];
  char *words[] = {program, (char *)"plain", NULL}, *environment[] = {path, NULL};
  snprintf(path, sizeof(path), "LD_LIBRARY_PATH=%.*sother", (int)(strrchr(program, '/') + 1 - program), program);
  execve(program, words, environment);
  return 9;
}

int main(int argc, char **argv) {
  int status;
  read_arguments(argc, argv);
  if (is("unloads")) return load_and_unload(argv[0], 0);
  if (is("dlmopen")) return load_and_unload(argv[0], 1);
  if (is("bare_exec")) return execute_bare(argv[0]);
  if (!is("destructor")) return whole_story();
  if (hold() != 0) return 1;
  late = 1;
  status = make_event();
  return status;
}
#endif
