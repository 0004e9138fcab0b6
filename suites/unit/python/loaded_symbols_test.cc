// SPDX-License-Identifier: MIT
#include "faults/python/loaded_symbols.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <link.h>

#include <string>

namespace cuaudit::python::loaded_symbols_test {
namespace {

struct Search {
  std::string file;  // of the object
  const char* name = nullptr;
  std::uintptr_t found = 0;
  bool seen = false;
};

int Look(dl_phdr_info* info, std::size_t, void* state) {
  Search& search = *static_cast<Search*>(state);
  const std::string path = info->dlpi_name;
  const LoadedSymbols symbols(*info);  // of every object, the vDSO among them
  const std::uintptr_t found = symbols.Find(search.name);
  if (path.substr(path.rfind('/') + 1) != search.file) return 0;
  search.seen = true;
  search.found = found;
  return 0;
}

Search Find(const std::string& file, const char* name) {
  Search search{file, name};
  dl_iterate_phdr(&Look, &search);
  return search;
}

TEST(LoadedSymbols, FindsWhatTheObjectDefines) {
  const Search search = Find("libc.so.6", "qsort");
  ASSERT_TRUE(search.seen);
  void* const libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);  // a sanitizer has a qsort of its own
  ASSERT_NE(libc, nullptr);
  EXPECT_EQ(search.found, reinterpret_cast<std::uintptr_t>(dlsym(libc, "qsort")));
  dlclose(libc);
}

TEST(LoadedSymbols, FindsNothingElse) {
  for (const char* const name : {"_PyRuntime", "", "qsor", "qsort_"}) EXPECT_EQ(Find("libc.so.6", name).found, 0U) << name;
  const Search used = Find("libstdc++.so.6", "malloc");  // used there, and defined elsewhere
  EXPECT_EQ(used.found, 0U);
}

}  // namespace
}  // namespace cuaudit::python::loaded_symbols_test
