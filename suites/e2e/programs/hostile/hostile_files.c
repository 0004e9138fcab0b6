// SPDX-License-Identifier: MIT
// hostile_files.c: programs that spoil what an audit lives in: its files, its memory, the loading of its libraries. A definition chooses
// the program. The modes are told in suites/e2e/hostile_rows.h, the story in hostile_story.h.
//
//   hostile_files MODE [loses]                closes, removes, replaces or fills files, and prints what is no text
//   hostile_memory MODE [loses] (MEMORY)      changes memory which is not its own, has none left, or fills it with driver objects
//   hostile_memory objects_COUNT [loses]      COUNT events at once; loses: none is given back
//   hostile_loading MODE [loses] (LOADING)    loads the driver in unusual ways, unloads it, or lets it go after everything else
//     With OWN_GETENV the executable has a getenv of its own that knows no variable, and every library of the process gets it.
//     As a library (STORY_LIBRARY) it is the story alone, for the programs that load it.
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "hostile_story.h"

#if defined(MEMORY)

enum { kMostAreas = 64 };

/* Each mapping of a file that others see changes of: among them the records of an audit. */
static void change_shared_memory(void (*change)(void *begin, size_t bytes)) {
  static uintptr_t begins[kMostAreas], ends[kMostAreas];
  char line[4096], allowed[8];
  int count = 0, i;
  FILE *maps = fopen("/proc/self/maps", "re");
  if (maps == NULL) return;
  while (count < kMostAreas && fgets(line, sizeof(line), maps) != NULL) {
    if (sscanf(line, "%lx-%lx %7s", &begins[count], &ends[count], allowed) == 3 && strcmp(allowed, "rw-s") == 0) ++count;
  }
  fclose(maps);
  for (i = 0; i < count; ++i) change((void *)begins[i], ends[i] - begins[i]);
}

static void protect(void *begin, size_t bytes) { mprotect(begin, bytes, PROT_READ); }
static void unmap(void *begin, size_t bytes) { munmap(begin, bytes); }

/* The first pages have what leads to all others; writing all of a large sparse file would fill the disk. */
static void scribble(void *begin, size_t bytes) { memset(begin, 0xa5, bytes < 65536 ? bytes : 65536); }

/* The file by which cuaudit and the copies that it forks tell each other of forks: a header, a tree, slots, a page each. Nothing where
   none are forked. page 0: the file is cut to nothing. byte kHeld: each slot is taken by nobody. */
enum { kHeld = 256 };
static void change_forks(int page, int byte) {
  uintptr_t begin = 0, end = 0;
  char line[4096], path[4096];
  int slot = 0;
  FILE *maps = fopen("/proc/self/maps", "re");
  if (maps == NULL) return;
  while (begin == 0 && fgets(line, sizeof(line), maps) != NULL) {
    if (strstr(line, ".forks") == NULL || sscanf(line, "%lx-%lx %*s %*s %*s %*s %4095s", &begin, &end, path) != 3) begin = 0;
  }
  fclose(maps);
  if (begin == 0) return;
  if (page == 0 && truncate(path, 0) != 0) _exit(9);
  if (page != 0 && byte != kHeld) memset((char *)begin + page * 4096L, byte, 4096);
  for (; byte == kHeld && slot < 4096 / (int)sizeof(int); slot += 4) ((volatile int *)(begin + page * 4096UL))[slot] = 1;
}

static int take_address_space(void) {
  unsigned long pages = 0;
  struct rlimit value;
  FILE *file = fopen("/proc/self/statm", "re");
  if (file == NULL || fscanf(file, "%lu", &pages) != 1) return 9;
  fclose(file);
  value.rlim_cur = value.rlim_max = pages * 4096;
  return setrlimit(RLIMIT_AS, &value) == 0 ? 0 : 9;
}

static int many_objects(long count) {
  CUevent *events = malloc((size_t)count * sizeof(CUevent));
  long i;
  if (events == NULL || hold() != 0) return 1;
  for (i = 0; i < count; ++i) {
    if (cuEventCreate(&events[i], 0) != CUDA_SUCCESS) return 1;
  }
  for (i = 0; !loses && i < count; ++i) cuEventDestroy(events[i]);
  free(events);
  give_back();
  return 0;
}

int main(int argc, char **argv) {
  int status = 0, page = 0;
  unsigned byte = 0;
  read_arguments(argc, argv);
  if (strncmp(mode, "objects_", 8) == 0) return many_objects(atol(mode + 8));
  if (hold() != 0) return 1;
  if (is("protects")) change_shared_memory(&protect);
  if (is("unmaps")) change_shared_memory(&unmap);
  if (is("scribbles")) change_shared_memory(&scribble);
  if (sscanf(mode, "forks_%d_%x", &page, &byte) == 2) change_forks(page, (int)byte);
  if (is("forks_held")) change_forks(2, kHeld);
  if (is("forks_cut")) change_forks(0, 0);
  if (is("no_more")) status = take_address_space();
  if (status == 0) status = make_event();
  if (status != 0 && is("scribbles_later")) change_shared_memory(&scribble);
  give_back();
  return status;
}

#elif defined(LOADING)

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

#else

extern char **environ;

/* The file that the drop-in writes to; empty when nobody audits. */
static const char *journal(void) {
  static char path[4096];
  const char *const options = getenv("CUAUDIT_OPTIONS");
  if (options == NULL || sscanf(options, "journal=%4095[^;]", path) != 1) path[0] = '\0';
  return path;
}

static void close_all(void) {
  int file;
  if (syscall(SYS_close_range, 0U, ~0U, 0U) == 0) return;
  for (file = 0; file < 1024; ++file) close(file);
}

/* The variables are gone, and so is the memory in which the kernel shows them to others. */
static void wipe_environment(void) {
  char **line;
  for (line = environ; *line != NULL; ++line) memset(*line, 0, strlen(*line));
  clearenv();
}

static void replace_journal(void) {
  const char *const path = journal();
  unlink(path);
  if (is("journal_is_pipe")) mkfifo(path, 0600);
  if (is("journal_is_directory")) mkdir(path, 0700);
}

static void fill_disk(void) {
  static char block[65536];
  const int file = open("filler", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  while (write(file, block, sizeof(block)) > 0) continue;
  while (write(file, block, 1) > 0) continue;
  close(file);
}

static void while_holding(const char *program) {
  if (is("closes_all")) close_all();
  if (is("wipes_environment")) wipe_environment();
  if (strncmp(mode, "journal_", 8) == 0 && !is("journal_removed_later")) replace_journal();
  if (is("truncates_journal") && truncate(journal(), 0) != 0) _exit(9);
  if (is("fills_disk")) fill_disk();
  if (is("removes_itself")) unlink(program);
  if (is("prints_bytes")) {
    fwrite("\033[2J\033]0;title\007\x9b\xff\0\r\n", 1, 20, stderr);
    _exit(5);
  }
}

int main(int argc, char **argv) {
  int status;
  read_arguments(argc, argv);
  if (hold() != 0) return 1;
  while_holding(argv[0]);
  status = make_event();
  if (status != 0 && is("journal_removed_later")) replace_journal();
  give_back();
  return status;
}

#endif
