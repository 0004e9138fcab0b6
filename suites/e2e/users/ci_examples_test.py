#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The files of examples/ci are what their services take, and their steps do what they say.

    ci_examples_test.py --tool build/dev/bin/cuaudit --root . --cuda INCLUDE --cache build/dev/ci_schemas github|gitlab|jenkins

Steps are run as the service runs them, in a repository of a small program: at its base, with a leak planted, and with the leak repaired. The
build stands for the installed package: `apt-get` is replaced by a program that notes what it is asked for. Actions of GitHub are not run; what they are given is.

YAML is checked by the schemas that the npm packages @action-validator/core and gitlab-ci-local carry; both are fetched once, into --cache. Where
npm has no network, the structure alone is checked, and the test says so. Jenkins has no schema: its steps are read from the lines `sh '...'`.

Exit status: 0 they do, 1 they do not, 77 the commands of a release audit or PyYAML are missing.
"""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree
from pathlib import Path

try:
    import yaml
except ImportError:
    print("skipped: no PyYAML; scripts/install_packages --all installs python3-yaml")
    sys.exit(77)

PACKAGES = {"github": "@action-validator/core@0.6.0", "gitlab": "gitlab-ci-local@4.60.0"}
PROGRAM = """\
#include <cuda.h>

/* With LEAK the buffer is lost when the copy fails. */
static CUresult upload(void) {
  static const char bytes[256];
  CUdeviceptr buffer;
  CUresult code = cuMemAlloc(&buffer, sizeof(bytes));
  if (code != CUDA_SUCCESS) return code;
  code = cuMemcpyHtoD(buffer, bytes, sizeof(bytes));
#ifdef LEAK
  if (code != CUDA_SUCCESS) return code;
#endif
  const CUresult freed = cuMemFree(buffer);
  return code == CUDA_SUCCESS ? freed : code;
}

/* Known, and in the baseline: the stream stays when its event cannot be made. */
static CUresult mark(void) {
  CUstream stream;
  CUevent event;
  CUresult code = cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
  if (code != CUDA_SUCCESS) return code;
  code = cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
  if (code != CUDA_SUCCESS) return code;
  cuEventDestroy(event);
  return cuStreamDestroy(stream);
}

int main(void) {
  CUcontext context;
  if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS) return 1;
  CUresult code = cuCtxSetCurrent(context);
  if (code == CUDA_SUCCESS) code = mark();
  if (code == CUDA_SUCCESS) code = upload();
  const CUresult released = cuDevicePrimaryCtxRelease(0);
  return code == CUDA_SUCCESS && released == CUDA_SUCCESS ? 0 : 1;
}
"""
CMAKE = """\
cmake_minimum_required(VERSION 3.25)
project(upload LANGUAGES C CXX)
find_package(cuaudit REQUIRED)
add_executable(upload upload.c)
target_compile_options(upload PRIVATE -g)
target_link_libraries(upload PRIVATE cuaudit::dropin)
"""
CASES = """\
[defaults]
driver = "sim"

[case.upload]
command = ["build/upload"]
"""


class Failed(Exception):
    pass


def expect(holds, what):
    if not holds:
        raise Failed(what)


def run(command, **options):
    return subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", timeout=300, **options)


def fetched(service, cache):
    """The folder of the package that has the schema, and None; or None, and why there is none."""
    place = cache / service
    package = place / "package"
    if not package.is_dir():
        if not shutil.which("npm"):
            return None, "npm: not found"
        place.mkdir(parents=True, exist_ok=True)
        # The package alone, without what it depends on and without its scripts. A copy that was cut short is not taken for a whole one.
        unpacked = place / "unpacked"
        shutil.rmtree(unpacked, ignore_errors=True)
        unpacked.mkdir()
        wanted = ["npm", "pack", "--silent", "--pack-destination", str(place), PACKAGES[service]]
        try:
            done = subprocess.run(wanted, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
        except subprocess.TimeoutExpired:
            return None, "npm: no answer within 120 s"
        if done.returncode != 0:
            return None, "npm: " + (done.stderr.strip().splitlines() or ["failed"])[0]
        subprocess.run(["tar", "-xzf", str(place / done.stdout.split()[-1]), "--strip-components=1", "-C", str(unpacked)], check=True)
        unpacked.rename(package)
    return package, None


def schema_says(service, file, cache):
    """What the service's schema has against the file; None: nothing. False: there is no schema here."""
    package, why = fetched(service, cache)
    if package is None:
        print(f"{service}: no schema here ({why}): only the structure is checked")
        return False
    if service == "github":
        ask = (f"const state = require('{package}').validateWorkflow(require('fs').readFileSync('{file}', 'utf8'));"
               "console.log(JSON.stringify(state.errors))")
        errors = json.loads(subprocess.run(["node", "-e", ask], capture_output=True, text=True, check=True).stdout)
        return json.dumps(errors, indent=1) if errors else None
    import jsonschema
    print_schema = f"import('{package}/src/schema/schema.js').then(m => console.log(JSON.stringify(m.schema)))"
    schema = json.loads(subprocess.run(["node", "-e", print_schema], capture_output=True, text=True, check=True).stdout)
    errors = list(jsonschema.Draft7Validator(schema).iter_errors(yaml.safe_load(file.read_text())))
    return "\n".join(f"{list(error.path)}: {error.message[:300]}" for error in errors) or None


def check_schema(service, file, cache, spoil):
    said = schema_says(service, file, cache)
    if said is False:
        return
    expect(said is None, f"{file}: the schema refuses it:\n{said}")
    # The check can fail: one wrong key is seen.
    with tempfile.TemporaryDirectory() as directory:
        wrong = Path(directory) / ".github/workflows" / file.name
        wrong.parent.mkdir(parents=True)
        text = file.read_text()
        expect(text.count(spoil[0]) == 1, f"{file}: expected one '{spoil[0]}'")
        wrong.write_text(text.replace(*spoil))
        expect(schema_says(service, wrong, cache), f"the schema takes {spoil[1]}, too: it checks nothing")
    print(f"{service}: the schema takes it")


class Step:
    def __init__(self, script, always=False):
        self.script, self.always = script, always


def github_steps(text):
    workflow = yaml.safe_load(text)
    expect(workflow.get("permissions", {}).get("security-events") == "write", "an upload of SARIF needs the permission security-events: write")
    job = workflow["jobs"]["audit"]
    for step in job["steps"]:
        expect(("run" in step) != ("uses" in step), f"a step either runs or uses: {step}")
        expect("uses" not in step or re.fullmatch(r"[\w./-]+@v\d+", step["uses"]), f"an action without its version: {step.get('uses')}")
    uploads = [step.get("if") for step in job["steps"] if "upload-sarif" in step.get("uses", "")]
    expect(uploads == ["always() && steps.compare.outputs.whole == 'true'"], f"when SARIF is uploaded: {uploads}")
    cached = [(step["uses"], step["if"], step["with"]["path"]) for step in job["steps"] if "actions/cache" in step.get("uses", "")]
    whole = "always() && steps.compare.outputs.whole == 'true' && github.ref_name == github.event.repository.default_branch"
    expect(cached == [("actions/cache/restore@v4", "github.event_name == 'pull_request'", "base"), ("actions/cache/save@v4", whole, "base")],
           f"only the base is taken from an earlier job, that of a whole audit of the default branch, and no results: {cached}")
    return [Step(step["run"], step.get("if") == "always()") for step in job["steps"] if "run" in step]


def gitlab_steps(text):
    job = yaml.safe_load(text)["release-audit"]
    expect(job["artifacts"]["when"] == "always", "the reports of a job that failed are kept as well")
    return [Step(line) for line in job["script"]]


def jenkins_steps(text):
    code = re.sub(r"//.*|'(?:[^'\\]|\\.)*'", lambda match: "" if match[0].startswith("//") else "''", text)
    expect(code.count("{") == code.count("}"), "braces do not match")
    expect(re.search(r"post\s*{\s*always\s*{\s*junit testResults: 'audit.xml'", text), "junit is published whether the stage fails or not")
    scripts = re.findall(r"^\s*sh '((?:[^'\\]|\\.)*)'", text, re.M)
    return [Step(re.sub(r"\\(.)", r"\1", script)) for script in scripts]


class Repository:
    """A scratch project that has the file of one service."""

    def __init__(self, directory, tool, cuda, service, steps):
        self.place, self.service, self.steps = Path(directory) / "project", service, steps
        (self.place / "ci").mkdir(parents=True)
        for name, text in ("upload.c", PROGRAM), ("CMakeLists.txt", CMAKE), ("cuaudit.toml", CASES), ("ci/cuaudit_1_amd64.deb", ""):
            (self.place / name).write_text(text)
        tools = Path(directory) / "bin"
        tools.mkdir()
        (tools / "apt-get").write_text(f"#!/bin/sh\nprintf '%s\\n' \"$*\" >> '{directory}/apt'\n")
        (tools / "apt-get").chmod(0o755)
        self.asked = Path(directory) / "apt"
        self.environment = {key: value for key, value in os.environ.items() if not key.startswith(("CUAUDIT_", "GITHUB_"))}
        self.environment.update(CI="true", PATH=f"{tools}:{tool.parent}:{os.environ['PATH']}", CUDA_HOME=str(Path(cuda).parent),
                                CMAKE_PREFIX_PATH=str(tool.parent.parent), CMAKE_BUILD_PARALLEL_LEVEL="1",
                                GITHUB_STEP_SUMMARY=str(Path(directory) / "summary.md"), GITHUB_WORKSPACE=str(self.place),
                                GITHUB_OUTPUT=str(Path(directory) / "output"))
        self.output = Path(directory) / "output"
        self.summary = Path(directory) / "summary.md"

    def run(self, script):
        # -e, as each of the services has it; -o pipefail is GitHub's and GitLab's.
        return run(["bash", "-eo", "pipefail", "-c", script], cwd=self.place, env=self.environment)

    def pipeline(self):
        """Whether all steps passed, and what the last one said."""
        for name in ("audit.sarif", "audit.xml", "gl-code-quality-report.json"):
            (self.place / name).unlink(missing_ok=True)
        self.summary.unlink(missing_ok=True)
        self.output.unlink(missing_ok=True)
        good, said = True, ""
        for step in self.steps:
            if not good and not step.always:
                continue
            done = self.run(step.script)
            print(f"$ {step.script}\n{done.stdout}[exit {done.returncode}]", flush=True)
            said = done.stdout if good else said
            good = good and done.returncode == 0
        return good, said

    def write(self, leak):
        (self.place / "upload.c").write_text(("#define LEAK\n" if leak else "") + PROGRAM)

    def sarif(self):
        return json.loads((self.place / "audit.sarif").read_text())["runs"][0]["results"]


def check_reports(repository, leaked):
    place = repository.place
    if repository.service == "github":
        results = repository.sarif()
        new = [one for one in results if one.get("baselineState") == "new"]
        expect(len(new) == int(leaked), f"new results in audit.sarif: {len(new)}")
        expect(repository.output.exists() and repository.output.read_text() == "whole=true\n", "the report of all cases is uploaded")
        expect(results, "the old defect is in audit.sarif as well")
        expect(repository.summary.exists() and "upload" in repository.summary.read_text(), "the step has a summary")
    else:
        tests = xml.etree.ElementTree.parse(place / "audit.xml").getroot()
        expect(next(tests.iter("testcase"), None) is not None, "audit.xml has test cases")
        failures = len(list(tests.iter("failure"))) + len(list(tests.iter("error")))
        expect(failures == int(leaked), f"failures in audit.xml: {failures}: only what compare fails on is one")
        old = [one for one in tests.iter("skipped") if one.get("message", "").startswith("unchanged: ")]
        expect(len(old) == 1, f"known defects in audit.xml: {len(old)}")
    if repository.service == "gitlab":
        issues = json.loads((place / "gl-code-quality-report.json").read_text())
        expect(len(issues) == 1 + int(leaked), f"issues of code quality: {len(issues)}")
        expect(all({"description", "check_name", "fingerprint", "severity", "location"} <= set(issue) for issue in issues), "issues have their fields")
    expect((place / "audit/audit.json").exists(), "the result is there to be kept")


def check_cached_base(repository):
    """In a pull request, what the default branch has already is not new; the compare step leaves a whole result for the cache."""
    base = repository.place / "base"
    expect((base / "audit.json").exists(), "there is a base to be cached")
    repository.write(leak=True)
    for what, expected in ("a leak that the cached base does not have", 1), ("the same leak, which it has now", 0):
        for step in repository.steps[1:]:
            done = repository.run(step.script)
        print(f"== {what}\n{done.stdout}[exit {done.returncode}]", flush=True)
        expect(done.returncode == expected, what)


def check_part(repository):
    """A report that does not have all cases is not uploaded, and neither is that of a compare that failed."""
    index = repository.place / "audit/audit.json"
    whole = index.read_text()
    part = json.loads(whole)
    part["cases"][0]["not_run"] = "the budget was spent before its turn"
    for text in json.dumps(part), "{":
        index.write_text(text)
        repository.output.unlink(missing_ok=True)
        repository.run(repository.steps[-1].script)
        expect(not repository.output.exists(), f"uploaded: {text}")
    index.write_text(whole)


def check_steps(repository):
    expect(len(repository.steps) == 4, f"steps: {len(repository.steps)}")
    repository.write(leak=False)
    # The first release: its defects are the baseline, by the commands of the README beside the file.
    for script in ("cmake -G Ninja -B build && cmake --build build", "cuaudit audit --out audit || [ $? -eq 1 ]", "cuaudit baseline write audit cuaudit.baseline"):
        done = repository.run(script)
        expect(done.returncode == 0, f"{script}: {done.returncode}\n{done.stdout}")
    for leak, what in (False, "the base itself"), (True, "a planted leak"), (False, "its repair"):
        print(f"== {what}")
        repository.write(leak)
        shutil.rmtree(repository.place / "base", ignore_errors=True)  # no pull request
        good, said = repository.pipeline()
        expect(good != leak, f"{what}: the pipeline {'passed' if good else 'failed'}")
        if leak:
            expect("new" in said and "upload" in said, "the failing step names what is new")
        check_reports(repository, leak)
    if repository.service == "github":
        check_cached_base(repository)
        check_part(repository)
    expect("./ci/cuaudit_1_amd64.deb" in repository.asked.read_text(), "the package is installed")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", type=Path, required=True)
    parser.add_argument("--root", type=Path, required=True)
    parser.add_argument("--cuda", required=True, help="include directory of the CUDA toolkit")
    parser.add_argument("--cache", type=Path, required=True, help="where the packages with the schemas are kept")
    parser.add_argument("service", choices=["github", "gitlab", "jenkins"])
    options = parser.parse_args()
    rows = json.loads(run([options.tool, "list", "options", "--format=json"]).stdout)
    known = {command for row in rows if row["option"] in ("--out", "--sarif") for command in row["commands"].split()}
    if not {"audit", "compare"} <= known:
        print("skipped: this cuaudit has no audit, or its compare writes no SARIF")
        return 77
    file = options.root / "examples/ci" / {"github": "github.yml", "gitlab": "gitlab.yml", "jenkins": "Jenkinsfile"}[options.service]
    read = {"github": github_steps, "gitlab": gitlab_steps, "jenkins": jenkins_steps}[options.service]
    spoil = {"github": ("runs-on:", "runs_on:"), "gitlab": ("when: always", "when: sometimes")}.get(options.service)
    try:
        if spoil:
            check_schema(options.service, file, options.cache.resolve(), spoil)
        with tempfile.TemporaryDirectory(prefix="cuaudit-ci.") as directory:
            check_steps(Repository(directory, options.tool.resolve(), options.cuda, options.service, read(file.read_text())))
    except Failed as failed:
        print(f"ci_examples_test: {options.service}: {failed}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
