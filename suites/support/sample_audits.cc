// SPDX-License-Identifier: MIT
#include <utility>

#include "harness/defect/defects.h"
#include "suites/support/sample_runs.h"

namespace cuaudit::suites {
namespace {

using report::Audit;
using report::Change;
using report::Finding;
using report::Frame;
using report::Gone;
using report::Mode;
using report::Outcome;
using report::Rule;
using report::Run;

Audit AuditOf(Run run) {
  Audit audit = {.generated = run.generated, .tool_version = run.tool_version};
  audit.cases.push_back({"", {}, {std::move(run)}, ""});
  return audit;
}

report::Suppressed Accepted(std::string until, bool expired, std::string entry) {
  return {"the driver's own cache, known upstream", "gpu-team", std::move(until), expired, std::move(entry)};
}

}  // namespace

Audit ReleaseAudit() {
  Audit audit = {.generated = "2026-01-02T03:04:05Z", .tool_version = "0.1.0"};
  Run sweep = SweepWithFindings();
  sweep.findings[0].acquired.stack[1].file = "/nowhere/player/src/../src/picture.c";  // as compilers write it
  sweep.findings[0].acquired.stack[3] = {"player", "main", "/usr/include/player/main.h", 12, 0x1100};
  sweep.defects[0].change = Change::New;
  sweep.defects[0].released = {"cuStreamDestroy", {Frame{"player", "picture_free", "src/picture.c", 140, 0x2200}}};
  sweep.defects[1].change = Change::Unchanged;
  sweep.defects[1].suppressed = Accepted("2026-12-31", false, "suppressions.toml:4");
  Run cycles = CyclesWithGrowth();
  cycles.defects[0].change = Change::Changed;
  cycles.defects[0].was = "9 host_heap (3564 bytes)";
  audit.cases.push_back({"player", {"nightly"}, {std::move(sweep), std::move(cycles)}, ""});
  audit.cases.push_back({"encoder", {}, {CleanSweep()}, ""});
  audit.cases.push_back({"decoder", {}, {}, "its program build/decoder is not there"});
  Run scaler = SecondFaults();
  scaler.defects[0].fingerprint = "v1-00000000000000c3";
  scaler.defects[0].change = Change::Unchanged;
  scaler.defects[0].suppressed = Accepted("2025-12-31", true, "suppressions.toml:9");
  audit.cases.push_back({"scaler", {}, {std::move(scaler)}, ""});
  Run again = SweepWithFindings();  // the leak of `player`, seen by another case that the base has, too
  again.defects.resize(1);
  again.defects[0].change = Change::Unchanged;
  again.defects[0].taken_for = {{report::Taken::Renamed, "make_picture", "v1-00000000000000a0"}};
  audit.cases.push_back({"thumbnail", {}, {std::move(again)}, ""});
  audit.cases.push_back({"probe", {}, {suites::NotExercised()}, ""});
  audit.comparison = report::Comparison{
      "releases/1.4",
      {Gone{Change::Fixed, "", "encoder", Mode::Sweep, "v1-00000000000000f1", Rule::Leak, "2 event, acquired by cuEventCreate"},
       Gone{Change::NotRun, "the case was not run", "decoder", Mode::Sweep, "v1-00000000000000f2", Rule::DoubleRelease, "1 stream"}}};
  audit.comparison->not_run = {{"encoder", Mode::Cycles, "the case has no cycles"}};
  audit.unused_suppressions = {"suppressions.toml:21"};
  return audit;
}

Audit AuditOfOneText(const std::string& text) {
  const std::vector<Frame> stack = {Frame{text, text, text, 3, 0x77}, Frame{text, "", "", 0, 0x99}};
  const report::Fault fault{text, 1, text, text, text, stack};
  Run run;
  run.mode = Mode::Sweep;
  run.outcome = Outcome::Findings;
  run.command = {text, text};
  run.driver = {report::DriverKind::Genuine, text, text, text, text, text, {}};
  run.scope = text;
  run.host.probes = {text};
  run.host.left_out = {{text, {report::Reason::CostsMore}}};
  run.totals.skipped = {{{report::Reason::CopyDiffers, text}, 1}};
  for (const Rule rule : {Rule::Leak, Rule::DoubleRelease, Rule::HostLeft}) {
    Finding finding;
    finding.rule = rule;
    finding.title = text;
    finding.kind = text;
    finding.count = 1;
    finding.fault = fault;
    finding.then = {fault};
    finding.shrunk_from = {text};
    finding.detail = text;
    finding.acquired = {text, stack};
    finding.where = text;
    finding.where_stack = stack;
    finding.other = {text, stack};
    finding.fingerprint = text;
    finding.reproduce = text;
    (rule == Rule::HostLeft ? run.notes : run.findings).push_back(finding);
  }
  run.generated = text;
  run.tool_version = text;
  harness::FindDefects(&run);
  for (report::Defect& defect : run.defects) {
    defect.fingerprint = text + std::to_string(&defect - run.defects.data());
    defect.released = {text, stack};
    defect.blame = report::Blame{stack.front(), report::BlamedBecause::HeldIt};
    defect.change = Change::Changed;
    defect.was = text;
    defect.taken_for = {{report::Taken::Part, text, text}};
  }
  run.defects.front().suppressed = report::Suppressed{text, text, text, true, text};
  run.defects.back().suppressed = report::Suppressed{text, text, text, false, text};
  Run failed = {.mode = Mode::Cycles, .outcome = Outcome::Interrupted};
  failed.message.told = text;
  failed.interrupted = report::Interrupted{text, 1, 2, false};
  Audit audit;
  audit.cases.push_back({text, {text}, {run, failed}, text});
  audit.cases.push_back({text + "2", {text}, {}, text});
  audit.comparison = report::Comparison{text,
                                        {Gone{Change::Fixed, text, text, Mode::Sweep, text, Rule::Leak, text},
                                         Gone{Change::NotRun, text, text, Mode::Sweep, text, Rule::Leak, text}}};
  audit.comparison->not_run = {{text, Mode::Sweep, text}};
  audit.unused_suppressions = {text};
  audit.generated = text;
  audit.tool_version = text;
  return audit;
}

std::vector<std::string> HostileTexts() {
  std::string demangled = "std::vector<";
  while (demangled.size() < 10240) demangled += "std::pair<int const, std::map<char, void (*)(int&&)>>, ";
  return {"</script><script>alert(1)</script>",
          "<!--",
          "</code></summary></details>",
          "| a | b |",
          "a\\|b",
          "`code``more```",
          "```\n# heading\n```",
          "~~~\n| --- |\n",
          "::error file=a,line=1::injected",
          "\n::error::injected\r::warning::too",
          "%0A::notice::%25",
          "##[error]old command",
          "\x1b[31mred\x1b]8;;link\x07",
          std::string("nul\0byte", 8),
          "tab\tline\nreturn\r\v\f\x7f",
          "\xff\xfe bytes \xc0\xaf \xed\xa0\x80 \xf0\x9f",
          "caf\xc3\xa9 \xe2\x80\xa8 \xc2\x85 \xef\xbf\xbe \xf0\x9f\x98\x80",
          "]]> & <![CDATA[",
          "[text](javascript:alert(1)) ![picture](https://x.invalid/y.png)",
          "https://x.invalid www.x.invalid @someone #12 :smile: $math$",
          "1. list\n- list\n> quote\n    code\n---",
          "__init__ *bold* ~strike~ &amp; &#124;",
          "operator[](unsigned long) [abi:cxx11](int) {0} {{",
          "../../../etc/passwd",
          "C:\\windows\\system32",
          "it's \"quoted\" $(reboot) `reboot`",
          "",
          " ",
          std::string(3000, '`'),
          demangled};
}

std::vector<SampleAudit> SampleAudits() {
  std::vector<SampleAudit> all;
  for (Sample& sample : Samples()) all.push_back({std::move(sample.name), AuditOf(std::move(sample.run))});
  all.push_back({"release", ReleaseAudit()});
  all.push_back({"hostile_release", AuditOfOneText("</code>|`[a](b)\n::error::\x1b[31m\xff%,<!--")});
  return all;
}

}  // namespace cuaudit::suites
