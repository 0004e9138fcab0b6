// SPDX-License-Identifier: MIT
// client_plugin.c: a host that knows nothing of CUDA and loads a plug-in that does.
// Usage   client_plugin PLUGIN.so
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv) {
  int (*run)(void);
  int status;
  void *plugin = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND) : NULL;
  if (plugin == NULL) {
    fprintf(stderr, "client_plugin: %s\n", dlerror());
    return 5;
  }
  *(void **)(&run) = dlsym(plugin, "run_plugin");
  if (run == NULL) return 6;
  status = run();
  dlclose(plugin);
  return status;
}
