// SPDX-License-Identifier: MIT
#include "reports/source_root.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "suites/support/temporary_dir.h"

namespace cuaudit::report::source_root_test {
namespace {

namespace fs = std::filesystem;

std::string PathOf(const SourceRoot& root, const std::string& file) {
  const std::optional<SourcePlace> place = root.Find(Frame{"player", "f", file, 7, 0});
  return place ? place->path + ":" + std::to_string(place->line) : "";
}

TEST(SourceRoot, FilesBelowItAreNamedFromIt) {
  const SourceRoot root("/nowhere/player");
  EXPECT_EQ(PathOf(root, "/nowhere/player/src/a.c"), "src/a.c:7");
  EXPECT_EQ(PathOf(root, "/nowhere/player/src/../lib/./a.c"), "lib/a.c:7");
  EXPECT_EQ(PathOf(root, "src/a.c"), "src/a.c:7") << "a relative name";
  EXPECT_EQ(PathOf(root, "/nowhere/player2/a.c"), "") << "a folder whose name begins alike";
  EXPECT_EQ(PathOf(root, "/usr/include/stdio.h"), "");
  EXPECT_EQ(PathOf(root, "../other/a.c"), "");
  EXPECT_EQ(PathOf(root, "/nowhere/player"), "");
  EXPECT_EQ(PathOf(root, ""), "");
  EXPECT_EQ(PathOf(root, std::string("src/a\0b.c", 9)), "");
}

TEST(SourceRoot, SymbolicLinksAreResolved) {
  const harness::TemporaryDir dir;
  fs::create_directory(dir.File("real"));
  std::ofstream(dir.File("real/a.c")) << "int a;\n";
  fs::create_directory_symlink(dir.File("real"), dir.File("link"));
  EXPECT_EQ(PathOf(SourceRoot(dir.File("link")), dir.File("real/a.c")), "a.c:7");
  EXPECT_EQ(PathOf(SourceRoot(dir.File("real")), dir.File("link/a.c")), "a.c:7");
  fs::create_symlink(dir.File("real/a.c"), dir.File("link/b.c"));
  EXPECT_EQ(PathOf(SourceRoot(dir.File("real")), dir.File("real/b.c")), "a.c:7") << "the file itself is a link";
}

TEST(SourceRoot, TheInnermostFrameBelowItCountsAndTheRuntimeNever) {
  const SourceRoot root("/nowhere/player");
  const std::vector<Frame> stack = {Frame{"libc.so.6", "start", "csu/start.c", 1, 0}, Frame{"player", "inner", "/usr/include/x.h", 2, 0},
                                    Frame{"player", "outer", "src/a.c", 0, 0}, Frame{"player", "main", "src/main.c", 9, 0}};
  const std::optional<SourcePlace> place = root.Find(stack);
  ASSERT_TRUE(place);
  EXPECT_EQ(place->path, "src/a.c");
  EXPECT_EQ(place->line, 1) << "an unknown line is the first";
  EXPECT_FALSE(root.Find(std::vector<Frame>{}));
}

}  // namespace
}  // namespace cuaudit::report::source_root_test
