// SPDX-License-Identifier: MIT
#include "harness/verdict/interpreters.h"

#include <gtest/gtest.h>

namespace cuaudit::harness::interpreters_test {
namespace {

TEST(Interpreters, AreKnownByTheNamesOfTheirFiles) {
  for (const char* const path : {"/usr/bin/python3.12", "/usr/lib/libpython3.11.so.1.0", "perl", "/opt/R/lib/libR.so", "/usr/bin/Rscript",
                                 "/usr/lib/jvm/libjvm.so", "libmonosgen-2.0.so.1", "/usr/lib/liboctinterp.so.10"}) {
    EXPECT_TRUE(IsInterpreter(path)) << path;
  }
}

TEST(Interpreters, OtherFilesAreNone) {
  for (const char* const path : {"", "/", "/usr/lib/python3/dist-packages/numpy/core.so", "/home/perl/program", "pythonic",
                                 "libpython_x.so", "Python3", "mypython3", "/usr/lib/libc.so.6", "/usr/bin/r"}) {
    EXPECT_FALSE(IsInterpreter(path)) << path;
  }
}

}  // namespace
}  // namespace cuaudit::harness::interpreters_test
