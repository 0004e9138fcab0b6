// SPDX-License-Identifier: MIT
#include "harness/symbols/python_source.h"

#include <gtest/gtest.h>

#include <fstream>

#include "suites/support/temporary_dir.h"

namespace cuaudit::harness::python_source_test {
namespace {

// The answer for the line that ends with "#!".
bool Once(const std::string& text, std::string_view callee = {}) {
  std::vector<std::string> lines;
  std::size_t line = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    if (lines.back().ends_with("#!")) line = lines.size();
    at = end + 1;
  }
  EXPECT_NE(line, 0U) << text;
  return CallsOnce(lines, line, callee);
}

TEST(CallsOnce, AFunctionWithoutALoopAroundTheCall) {
  EXPECT_TRUE(Once("def event(self):\n  p = void()\n  check(cu.cuEventCreate(byref(p), 0))  #!\n"));
  EXPECT_TRUE(Once("for x in y:\n  pass\ndef f():\n  for x in y:\n    pass\n  try:\n\n# note\n    cu.cuInit(0)  #!\n"));
  EXPECT_TRUE(Once("class A:\n  async def f(\n      self,\n  ) -> int:\n    async with b:\n      cu.cuInit(0)  #!\n"));
  EXPECT_TRUE(Once("for x in y:\n  def f(\n      x,\n  ):\n    cu.cuInit(0)  #!\n"));
  EXPECT_TRUE(Once("cu.cuInit(0)  #!\n"));
}

TEST(CallsOnce, ALoopComesBack) {
  EXPECT_FALSE(Once("def f():\n  for x in y:\n    if x:\n      cu.cuInit(0)  #!\n"));
  EXPECT_FALSE(Once("def f():\n  while True:\n    cu.cuInit(0)  #!\n"));
  EXPECT_FALSE(Once("async def f():\n  async for x in y:\n    cu.cuInit(0)  #!\n"));
  EXPECT_FALSE(Once("def f():\n  a = [cu.cuInit(0) for _ in y]  #!\n"));
  EXPECT_FALSE(Once("def f():\n  a = [\n    cu.cuInit(0)  #!\n    for _ in y]\n"));
  EXPECT_FALSE(Once("def f():\n  a = list(cu.cuInit(0)  #!\n    for _ in y)\n"));
  EXPECT_FALSE(Once("def f():\n  a = x + \\\n  cu.cuInit(0)  #!\n"));
  EXPECT_FALSE(Once("def f():\n  a = map(lambda x: cu.cuInit(0), y)  #!\n"));
}

TEST(CallsOnce, ALineThatMakesItTwiceOrWithoutItsName) {
  EXPECT_FALSE(Once("cu.cuInit(0) or cu.cuInit(0)  #!\n"));
  EXPECT_FALSE(Once("init(0)  #!\n"));
  EXPECT_TRUE(Once("p = self.event(0)  #!\n", "Pool.event"));
  EXPECT_FALSE(Once("p, q = self.event(0), self.event(1)  #!\n", "Pool.event"));
  EXPECT_FALSE(Once("p = self.events(0)  #!\n", "Pool.event"));
  EXPECT_TRUE(Once("p = Stream(0)  #!\n", "Stream.__init__"));
  EXPECT_TRUE(Once("super().__init__(0)  #!\n", "Stream.__init__"));
  EXPECT_FALSE(Once("with Stream(0):  #!\n", "Stream.__exit__"));
  EXPECT_FALSE(Once("f(0)  #!\n", "make.<locals>.<lambda>"));
}

TEST(CallsOnce, ATextThatIsNotTheProgramsTellsNothing) {
  EXPECT_FALSE(CallsOnce({}, 1, ""));
  const std::vector<std::string> one = {"cu.cuInit(0)"};
  EXPECT_FALSE(CallsOnce(one, 0, ""));
  EXPECT_FALSE(CallsOnce(one, 2, ""));
  const TemporaryDir dir;
  std::ofstream(dir.File("a.py")) << "cu.cuInit(0)\n";
  PythonSources sources;
  EXPECT_TRUE(sources.CallsOnce(dir.File("a.py"), 1, ""));
  EXPECT_FALSE(sources.CallsOnce(dir.File("a.py"), -1, ""));
  for (const std::string& none : {std::string("/dev/zero"), dir.File("none.py"), std::string("<string>"), std::string("/")}) {
    EXPECT_FALSE(sources.CallsOnce(none, 1, "")) << none;
  }
}

}  // namespace
}  // namespace cuaudit::harness::python_source_test
