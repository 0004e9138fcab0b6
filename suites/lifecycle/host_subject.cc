// SPDX-License-Identifier: MIT
// host_subject.cc: lifecycles in process that lose one thing of the host, or none, built with a sanitizer of gcc or clang, without one, and
// with an allocator of their own. host_subject LOSS prints the findings of a sweep and of ten cycles, and what was not metered.
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "cuaudit/lifecycle.h"

#ifdef CUAUDIT_OWN_MALLOC
// The build hides symbols, and clang these too. Libraries would then go on with the C library's malloc.
extern "C" {
void* __libc_malloc(std::size_t);
void __libc_free(void*);
[[gnu::visibility("default")]] void* malloc(std::size_t bytes) { return __libc_malloc(bytes); }
[[gnu::visibility("default")]] void free(void* block) { __libc_free(block); }
}
#endif

namespace {

int given = -1;           // a descriptor that is open when the audits begin
std::vector<void*> kept;  // reachable until the end: nothing that a sanitizer's own look for leaks could see

void Lose(const std::string& what) {
  if (what == "block") kept.push_back(std::malloc(16));
  if (what == "new") kept.push_back(new int[10]);
  if (what == "library") dlopen("libm.so.6", RTLD_NOW);
  if (what == "descriptor") (void)open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (what == "closed") close(given);
  if (what == "mutex" || what == "freed" || what == "locked") {
    auto* const mutex = static_cast<pthread_mutex_t*>(std::malloc(sizeof(pthread_mutex_t)));
    pthread_mutex_init(mutex, nullptr);
    if (what == "mutex") {
      pthread_mutex_t* const old = mutex;
      kept.push_back(old);
      return;
    }
    if (what == "locked") pthread_mutex_lock(mutex);
    std::free(mutex);
  }
  if (what == "thread") {
    pthread_t thread{};
    if (pthread_create(
            &thread, nullptr, [](void*) -> void* { return nullptr; }, nullptr) == 0)
      kept.push_back(reinterpret_cast<void*>(thread));
  }
  if (what == "nothing") {
    const auto block = std::make_unique<char[]>(5000);
    block[0] = 1;
    std::thread([] { std::vector<char>(100).at(1) = 1; }).join();
    close(open("/dev/null", O_RDONLY | O_CLOEXEC));
    std::FILE* const file = std::fopen("/dev/null", "w");
    std::fprintf(file, "%f", 0.5);
    std::fclose(file);
    dlclose(dlopen("libm.so.6", RTLD_NOW));
  }
}

void Print(const char* title, const cuaudit::Audit& audit) {
  std::printf("%s:", title);
  if (!audit.clean() && audit.findings.empty()) std::printf(" %s", audit.message.c_str());
  for (const cuaudit::Finding& one : audit.findings)
    std::printf(" %s/%s/%d", one.rule.c_str(), one.kind.c_str(), static_cast<int>(one.count));
  std::printf("\n");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  kept.reserve(10000);
  given = open("/dev/null", O_RDONLY | O_CLOEXEC);
  const std::string what = argv[1];
  const auto event = [&](bool always) {
    return cuaudit::Lifecycle("loses").WithCurrentContext().Init([&what, always](cuaudit::DriverRef driver) {
      if (always) Lose(what);
      CUevent made = nullptr;
      const CUresult code = driver.EventCreate(&made, 0);
      if (code == CUDA_SUCCESS) return driver.EventDestroy(made);
      if (!always) Lose(what);
      return code;
    });
  };
  const cuaudit::Audit swept = cuaudit::Sweep(event(false));
  Print("sweep", swept);
  Print("cycles", cuaudit::RunCycles(event(true)));
  for (const std::string& text : swept.unmetered) std::printf("not metered: %s\n", text.c_str());
  std::fflush(stdout);
  // Threads that nobody joined, and a heap full of what was lost on purpose.
  _exit(0);
}
