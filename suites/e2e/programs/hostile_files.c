// SPDX-License-Identifier: MIT
// hostile_files.c: programs that close, remove, replace or fill the files that an audit lives in, and that print what is no text.
// Usage   hostile_files MODE [loses]      the modes are told in suites/e2e/hostile_rows.h, the story in hostile_story.h
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "hostile_story.h"

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
