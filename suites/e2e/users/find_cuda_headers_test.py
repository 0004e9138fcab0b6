#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""scripts/find_cuda_headers on a machine without a toolkit.

    find_cuda_headers_test.py --root SOURCES --include CUDA_HEADERS [--cmake FILE] [--compiler FILE] [--generated DIR] [--plain]

The toolkit is hidden in a mount namespace of this test's own: /usr/local has no cuda* there, apt and dpkg have a database and a source of their
own, and what is installed is gone with the namespace. Where a namespace is not allowed, CUAUDIT_CUDA_ROOT names another / and what needs apt is
skipped. pip sees a folder of wheels that are made here from --include, in the layouts of NVIDIA's.
"""
import argparse
import hashlib
import importlib.machinery
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path

NO_NAMESPACE = 99
DRIVER = ["cuda.h", "cudaGL.h", "cudaEGL.h", "cudaTypedefs.h", "cudaProfilerTypedefs.h", "cudaGLTypedefs.h", "cudaEGLTypedefs.h"]
RUNTIME = ["cuda_runtime_api.h", "builtin_types.h", "device_types.h", "driver_types.h", "vector_types.h", "surface_types.h", "texture_types.h",
           "cuda_device_runtime_api.h", "vector_functions.h", "vector_functions.hpp"]
PROFILER = ["cudaProfiler.h", "cuda_profiler_api.h"]
CRT = ["crt/host_defines.h"]
parser = argparse.ArgumentParser()
parser.add_argument("--root", type=Path, required=True)
parser.add_argument("--include", type=Path, required=True)
parser.add_argument("--cmake", default="cmake")
parser.add_argument("--compiler", default="c++")
parser.add_argument("--generated", type=Path)
parser.add_argument("--plain", action="store_true", help="no mount namespace, as where none is allowed")
parser.add_argument("--inside", type=Path, help="the scratch directory, in the namespace")
options, rest = parser.parse_known_args()


def wheel(index, name, version, members, tag="py3-none-any"):
    """Writes a wheel; members: name -> bytes."""
    stem = f"{name.replace('-', '_')}-{version}"
    path = index / f"{stem}-{tag}.whl"
    index.mkdir(parents=True, exist_ok=True)
    info = f"{stem}.dist-info"
    about = {f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".encode(),
             f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: cuaudit\nRoot-Is-Purelib: true\nTag: {tag}\n".encode(), f"{info}/RECORD": b""}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, content in {**members, **about}.items():
            archive.writestr(member, content)
    return path


def fake_headers(version=13000):
    headers = {name: b"" for name in DRIVER + RUNTIME + PROFILER + CRT}
    headers["cuda.h"] = f"#define CUDA_VERSION {version}\n".encode()
    return headers


def real_headers(names):
    return {name: (options.include / name).read_bytes() for name in names}


def below(folder, headers):
    return {f"nvidia/{folder}/include/{name}": content for name, content in headers.items()}


def index_of_13(index, headers=None):
    """Wheels with the layout of 13: one include directory, three wheels."""
    headers = headers or fake_headers()
    for name, version, members in (("nvidia-cuda-runtime", "13.0.96", DRIVER + RUNTIME), ("nvidia-cuda-crt", "13.0.88", CRT),
                                   ("nvidia-cuda-profiler-api", "13.0.85", PROFILER)):
        wheel(index, name, version, below("cu13", {member: headers[member] for member in members}))
    return index


def index_of_12(index):
    """The same with the layout of 12: an include directory a wheel."""
    headers = fake_headers(12080)
    wheel(index, "nvidia-cuda-runtime-cu12", "12.8.90", below("cuda_runtime", {name: headers[name] for name in DRIVER + RUNTIME}))
    wheel(index, "nvidia-cuda-profiler-api-cu12", "12.8.90", below("cuda_profiler_api", {name: headers[name] for name in PROFILER}))
    return index


def toolkit(home, version=13000, without=()):
    for name, content in fake_headers(version).items():
        if name not in without:
            target = home / "include" / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)


def package(repository, name, headers, prefix):
    """A Debian package and its stanza of a Packages file."""
    root = repository / "build" / name
    for header, content in headers.items():
        target = root / prefix / header
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    control = f"Package: {name}\nVersion: 1\nArchitecture: all\nMaintainer: cuaudit\nDescription: made by a test\n"
    (root / "DEBIAN").mkdir(parents=True)
    (root / "DEBIAN/control").write_text(control)
    file = repository / f"{name}.deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "-Znone", "--build", root, file], check=True, stdout=subprocess.DEVNULL)
    shutil.rmtree(root)
    with (repository / "Packages").open("a") as packages:
        packages.write(f"{control}Filename: ./{file.name}\nSize: {file.stat().st_size}\n"
                       f"SHA256: {hashlib.sha256(file.read_bytes()).hexdigest()}\n\n")


def mount(*arguments):
    subprocess.run(["mount", *map(str, arguments)], check=True, stderr=subprocess.DEVNULL)


def hide(scratch):
    """In a mount namespace: /usr/local without cuda*, and apt's directories replaced."""
    local = scratch / "local"
    local.mkdir()
    mount("-t", "tmpfs", "none", local)
    for entry in Path("/usr/local").iterdir():
        if entry.name.startswith("cuda"):
            continue
        if entry.is_symlink():
            (local / entry.name).symlink_to(os.readlink(entry))
        elif entry.is_dir():
            (local / entry.name).mkdir()
            mount("--rbind", entry, local / entry.name)
    mount("--rbind", local, "/usr/local")
    if Path("/usr/include/cuda.h").exists():
        mount("--bind", "/dev/null", "/usr/include/cuda.h")
    if shutil.which("apt-get"):
        apt = scratch / "apt"
        for name in ("etc/apt/apt.conf.d", "var/lib/apt/lists/partial", "var/cache/apt/archives/partial", "var/log/apt"):
            (apt / name).mkdir(parents=True)
        (apt / "etc/apt/apt.conf").write_text('APT::Sandbox::User "root";\nDir::Etc::trusted "/etc/apt/none.gpg";\n')
        shutil.copytree("/var/lib/dpkg", apt / "var/lib/dpkg", ignore=shutil.ignore_patterns("[Ll]ock*", "*-old"))
        for name in ("etc/apt", "var/lib/apt", "var/cache/apt", "var/log", "var/lib/dpkg"):
            mount("--bind", apt / name, Path("/") / name)


class FindCudaHeaders(unittest.TestCase):
    scratch = None
    hidden = False

    @classmethod
    def setUpClass(cls):
        # A checkout of its own, so that build/cuda-headers is: everything but build is a link.
        cls.tree = cls.scratch / "tree"
        cls.tree.mkdir()
        for entry in options.root.iterdir():
            if entry.name not in ("build", ".git"):
                (cls.tree / entry.name).symlink_to(entry)
        cls.root = Path("/") if cls.hidden else cls.scratch / "root"
        cls.quick = cls.scratch / "quick"  # an apt that has nothing, at once
        cls.quick.mkdir()
        for name, does in (("apt-get", "exit 1"), ("apt-cache", "exit 1"), ("sudo", "exit 0")):
            (cls.quick / name).write_text(f"#!/bin/sh\n{does}\n")
            (cls.quick / name).chmod(0o755)

    def setUp(self):
        for path in [*(self.root / "usr/local").glob("cuda*"), self.tree / "build", self.scratch / "home"]:
            shutil.rmtree(path, ignore_errors=True)
        (self.root / "usr/local").mkdir(parents=True, exist_ok=True)

    def environment(self, index=None, apt=False, **extra):
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("CUDA_", "PIP_", "CUAUDIT_"))}
        kept.update(PIP_NO_INDEX="1", PIP_CONFIG_FILE=os.devnull, LC_ALL="C.UTF-8", **extra)
        if index:
            kept["PIP_FIND_LINKS"] = str(index)
        if not self.hidden:
            kept["CUAUDIT_CUDA_ROOT"] = str(self.root)
        if not apt:
            kept["PATH"] = f"{self.quick}{os.pathsep}{kept['PATH']}"
        return kept

    def find(self, *arguments, **how):
        return subprocess.run([sys.executable, self.tree / "scripts/find_cuda_headers", *arguments], env=self.environment(**how),
                              capture_output=True, text=True, timeout=120)

    def expect_taken(self, done, include, *parts):
        self.assertEqual((done.returncode, done.stdout), (0, f"{include}\n"), done.stderr)
        self.expect_line(done, *parts)

    def expect_line(self, done, *parts):
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertTrue(done.stderr.startswith("find_cuda_headers: "), done.stderr)
        for part in parts:
            self.assertIn(part, done.stderr)

    def expect_nothing_left(self):
        left = [path.name for path in (self.tree / "build").iterdir()] if (self.tree / "build").exists() else []
        self.assertEqual(left, [])

    def test_the_order(self):
        home = self.scratch / "home"
        index = index_of_13(self.scratch / "order")
        include = self.tree / "build/cuda-headers/include"
        self.expect_taken(self.find(index=index, CUDA_HOME=str(home)), include, "CUDA 13.0 headers from the PyPI wheels nvidia_cuda_crt-13.0.88-",
                          "nvidia_cuda_runtime-13.0.96-", f"passed over: CUDA_HOME {home}: no include/cuda.h; the toolkit ",
                          "/usr/local/cuda: no include/cuda.h", "the package manager: apt has no cuda-cudart-dev-*")
        self.expect_taken(self.find("--look"), include, "from the PyPI wheels")
        packaged = self.root / "usr/local/cuda-13.0"
        toolkit(packaged)
        self.expect_taken(self.find(index=index), packaged / "include", "from the package manager")
        toolkit(self.root / "usr/local/cuda")
        self.expect_taken(self.find(index=index), self.root / "usr/local/cuda/include", "from the toolkit")
        toolkit(home)
        self.expect_taken(self.find(index=index, CUDA_HOME=str(home)), home / "include", "from CUDA_HOME")
        self.expect_taken(self.find("--look", CUDA_PATH=str(home)), home / "include", "from CUDA_PATH")

    def test_what_will_not_do_is_passed_over_and_named(self):
        home = self.scratch / "home"
        toolkit(home, 12020)
        toolkit(self.root / "usr/local/cuda", without=["crt/host_defines.h"])
        toolkit(self.root / "usr/local/cuda-12.8", 12080)
        done = self.find("--look", CUDA_HOME=str(home))
        self.assertEqual((done.returncode, done.stdout), (3, ""))
        self.expect_line(done, "CUDA_HOME", "CUDA 12.2, older than 13.0", "/usr/local/cuda: no include/crt/host_defines.h", "cuda-12.8: CUDA 12.8, older")
        self.expect_taken(self.find("--look", "--at-least", "12.4"), self.root / "usr/local/cuda-12.8/include", "CUDA 12.8 headers")

    def test_nothing_to_be_had(self):
        done = self.find(index=self.scratch / "empty")
        self.assertEqual((done.returncode, done.stdout), (3, ""))
        self.expect_line(done, "no CUDA headers of 13.0 or newer", "/usr/local/cuda: no include/cuda.h", "apt has no cuda-cudart-dev-*",
                         "No matching distribution found for nvidia-cuda-runtime", "set CUDA_HOME", "cuda-cudart-dev-13-0 and cuda-driver-dev-13-0",
                         "nvidia-cuda-runtime 13.0", "PIP_INDEX_URL", "PIP_FIND_LINKS")
        self.expect_nothing_left()
        done = self.find("--look")
        self.assertEqual(done.returncode, 3)
        self.expect_line(done, "run scripts/find_cuda_headers")
        self.assertEqual(self.find("--at-least", "new").returncode, 2)

    def test_wheels_of_12_where_they_will_do(self):
        index = index_of_12(self.scratch / "index12")
        done = self.find("--at-least", "12.4", index=index)
        self.expect_taken(done, self.tree / "build/cuda-headers/include", "CUDA 12.8 headers", "nvidia_cuda_runtime_cu12-12.8.90-")

    def test_a_truncated_wheel(self):
        index = index_of_13(self.scratch / "truncated")
        whole = next(index.glob("nvidia_cuda_runtime-*"))
        whole.write_bytes(whole.read_bytes()[:700])
        done = self.find(index=index)
        self.assertEqual((done.returncode, done.stdout), (3, ""))
        self.expect_line(done, "PyPI: pip: ", "invalid")
        self.expect_nothing_left()

    def test_hostile_wheels(self):
        """What pip hands over is judged, not trusted."""
        script = str(self.tree / "scripts/find_cuda_headers")
        loader = importlib.machinery.SourceFileLoader("find_cuda_headers", script)
        module = importlib.util.module_from_spec(importlib.util.spec_from_loader("find_cuda_headers", loader))
        sys.dont_write_bytecode = True
        loader.exec_module(module)
        here = self.scratch / "hostile"

        def why(members, spoil=None):
            shutil.rmtree(here, ignore_errors=True)
            path = wheel(here, "nvidia-cuda-runtime", "13.0.1", members)
            if spoil:
                spoil(path)
            module.download = lambda requirements, directory: [path]
            with self.assertRaises(module.Unusable) as raised:
                module.fetch_wheels(13000)
            self.expect_nothing_left()
            self.assertNotIn("\n", str(raised.exception))
            self.assertIn("nvidia_cuda_runtime-13.0.1-", str(raised.exception))
            return str(raised.exception)

        def overwrite(path):
            content = bytearray(path.read_bytes())
            at = content.index(b"cuda.h") + 10
            content[at:at + 20] = bytes(20)
            path.write_bytes(bytes(content))

        good = below("cu13", fake_headers())
        for name in ("nvidia/cu13/include/../../../../evil.h", "/tmp/evil.h", "nvidia\\..\\evil.h"):
            self.assertIn("leads out of the wheel", why({**good, name: b"evil"}))
        self.assertEqual(list(self.scratch.rglob("evil.h")), [])
        self.assertIn("no include/cuda.h", why(below("cu13", {"cudaGL.h": b""})))
        self.assertIn("CUDA 12.2, older than 13.0", why(below("cu13", fake_headers(12020))))
        self.assertIn("names no CUDA_VERSION", why({**good, "nvidia/cu13/include/cuda.h": b"nothing"}))
        self.assertIn("no include/crt/host_defines.h", why({name: content for name, content in good.items() if "crt" not in name}))
        self.assertIn("larger than headers are", why({**good, "nvidia/cu13/include/large.h": bytes(module.LARGEST_HEADER + 1)}))
        self.assertIn("damaged", why(good, lambda path: path.write_bytes(path.read_bytes()[:-30])))
        self.assertIn("damaged", why(good, overwrite))

    def test_the_package_manager(self):
        if not self.hidden or not shutil.which("apt-get"):
            self.skipTest("needs apt-get and a mount namespace")
        repository = self.scratch / "repository"
        repository.mkdir()
        headers = fake_headers()
        package(repository, "cuda-cudart-dev-12-8", fake_headers(12080), "usr/local/cuda-12.8/include")
        Path("/etc/apt/sources.list").write_text(f"deb [trusted=yes] file:{repository} ./\n")
        index = index_of_13(self.scratch / "beside")
        done = self.find(index=index, apt=True)
        self.expect_taken(done, self.tree / "build/cuda-headers/include", "apt has cuda-cudart-dev of 12.8 only")
        shutil.rmtree(self.tree / "build")

        place = "usr/local/cuda-13.0/targets/x86_64-linux/include"
        package(repository, "cuda-cudart-dev-13-0", {name: headers[name] for name in DRIVER + RUNTIME}, place)
        package(repository, "cuda-driver-dev-13-0", {}, place)
        package(repository, "cuda-crt-13-0", {name: headers[name] for name in CRT}, place)
        package(repository, "cuda-profiler-api-13-0", {name: headers[name] for name in PROFILER}, place)
        package(repository, "cuda-cudart-dev-13-9", fake_headers(13090), "usr/local/cuda-13.9/include")
        subprocess.run(["apt-get", "update", "-qq"], check=True)
        done = self.find(index=index, apt=True)
        self.expect_taken(done, Path("/") / place, "CUDA 13.0 headers from the package manager")
        self.expect_nothing_left()

    def test_it_builds_with_the_wheels(self):
        index = index_of_13(self.scratch / "real", real_headers(DRIVER + RUNTIME + PROFILER + CRT))
        environment = self.environment(index=index, apt=True)

        def run(*command):
            done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=self.tree)
            self.assertEqual(done.returncode, 0, done.stdout)
            return done.stdout

        # As a user would, where that would install nothing else: the namespace's apt has no packages to install.
        said = ""
        if self.hidden and shutil.which("dpkg-query"):
            Path("/etc/apt/sources.list").unlink(missing_ok=True)
            said = subprocess.run("./scripts/install_packages", env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                  cwd=self.tree).stdout
        if not said or said.startswith("install_packages: "):
            said = self.find(index=index).stderr
        self.assertIn("headers from the PyPI wheels", said)
        include = self.tree / "build/cuda-headers/include"
        build = self.tree / "build/check"
        said = run(options.cmake, "-S", ".", "-B", build, "-G", "Ninja", f"-DCMAKE_CXX_COMPILER={options.compiler}", "-DCUAUDIT_TESTS=OFF")
        self.assertIn(str(include), said)
        run(options.cmake, "--build", build, "--target", "cuaudit_driver_tables", "cuaudit_cudart_tables")
        self.assertTrue((build / "generated/driver_calls.inc").is_file())
        if options.generated and (options.generated / "cudart_exports_13.inc").is_file():
            for name in ("driver_calls.inc", "driver_params.inc", "driver_codes.inc", "cudart_exports_13.inc"):
                self.assertEqual((build / "generated" / name).read_text(), (options.generated / name).read_text(), name)
        unit = self.scratch / "all.cc"
        unit.write_text("".join(f"#include <{name}>\n" for name in DRIVER + RUNTIME + PROFILER))
        run(options.compiler, "-std=c++20", "-fsyntax-only", "-isystem", str(include), "-isystem", "faults/driver/graphics_types", str(unit))
        # The headers go, another place has some: a build folder that had found them looks again.
        shutil.rmtree(include.parent)
        toolkit(self.root / "usr/local/cuda")
        self.assertIn(str(self.root / "usr/local/cuda/include"), run(options.cmake, build))


def main():
    if options.inside:
        try:
            hide(options.inside)
        except (OSError, subprocess.CalledProcessError, shutil.Error) as why:
            print(f"no namespace: {why}", file=sys.stderr)
            sys.exit(NO_NAMESPACE)
        FindCudaHeaders.hidden = True
        FindCudaHeaders.scratch = options.inside
        unittest.main(argv=[sys.argv[0], *rest])
    with tempfile.TemporaryDirectory() as scratch:
        inside = Path(scratch) / "inside"
        inside.mkdir()
        again = [sys.executable, *sys.argv, "--inside", str(inside)]
        mounts = ["--mount"] if os.getuid() == 0 else ["--mount", "--map-root-user"]
        if not options.plain and shutil.which("unshare") and subprocess.run(["unshare", *mounts, "true"], stderr=subprocess.DEVNULL).returncode == 0:
            headers = Path(scratch) / "include"  # those of --include may be among what is hidden
            shutil.copytree(options.include, headers, ignore=lambda folder, names: [name for name in names if not wanted(Path(folder), name)])
            done = subprocess.run(["unshare", *mounts, *again, "--include", str(headers)])
            if done.returncode != NO_NAMESPACE:
                sys.exit(done.returncode)
        FindCudaHeaders.scratch = Path(scratch) / "plain"
        FindCudaHeaders.scratch.mkdir()
        unittest.main(argv=[sys.argv[0], *rest])


def wanted(folder, name):
    path = (folder / name).relative_to(options.include)
    return str(path) in ("crt", *DRIVER, *RUNTIME, *PROFILER, *CRT)


if __name__ == "__main__":
    main()
