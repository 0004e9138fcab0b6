#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Packs the build and uses what was packed as others do.

    packages_test.py --build build/dev --source . --cuda INCLUDE Tarball|Debian|CleanRoot

Tarball: is unpacked at two places, and a project finds it there by find_package. Debian: the two packages have what they should, apart from
each other, and name what they need. CleanRoot: they are installed into a new Debian, where they work (as root, with mmdebstrap and a mirror).
Exit status: 0 it works, 1 it does not, 77 what a test needs is missing.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BUILD = SOURCE = CUDA = None
CLEAN = {key: value for key, value in os.environ.items() if key not in ("LD_LIBRARY_PATH", "LIBRARY_PATH", "LD_PRELOAD", "CUAUDIT_OPTIONS")}
CLIENT = 'import ctypes; d = ctypes.CDLL("libcuda.so.1"); n = ctypes.create_string_buffer(64); d.cuInit(0); d.cuDeviceGetName(n, 64, 0); print(n.value.decode())'


def run(*command, status=0, **options):
    done = subprocess.run([str(word) for word in command], env=options.pop("env", CLEAN), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=540, **options)
    assert status is None or done.returncode == status, f"{command}: {done.returncode}, expected {status}\n{done.stdout}"
    return done.stdout


def packed(generator, directory):
    """The files that cpack makes; the build is not touched."""
    run("cpack", "--config", BUILD / "CPackConfig.cmake", "-G", generator, "-B", directory)
    return sorted(path for path in Path(directory).iterdir() if path.is_file())


class Packages(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="cuaudit-packages.")
        self.addCleanup(temporary.cleanup)
        self.home = Path(temporary.name)

    def example(self, prefix, name):
        """examples/copy_frames.c, built against the package below `prefix`, which CMake must find there."""
        project, build = self.home / name, self.home / f"{name}-build"
        project.mkdir()
        shutil.copy(SOURCE / "examples/copy_frames.c", project)
        (project / "CMakeLists.txt").write_text("""\
cmake_minimum_required(VERSION 3.25)
project(copy_frames LANGUAGES C CXX)
find_package(cuaudit REQUIRED)
enable_testing()
add_executable(copy_frames copy_frames.c)
target_link_libraries(copy_frames PRIVATE cuaudit::dropin)
cuaudit_add_sweep(NAME copy_frames_unwinds COMMAND copy_frames 2 OPTIONS --driver=sim)
""")
        run("cmake", "-G", "Ninja", "-S", project, "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}", f"-DCUAUDIT_CUDA_INCLUDE={CUDA}")
        self.assertIn(f"cuaudit_DIR:PATH={prefix}/lib/cmake/cuaudit\n", (build / "CMakeCache.txt").read_text())
        run("cmake", "--build", build, "-j1")
        return build

    def check_program(self, tool, example):
        self.assertIn("simulated", run(tool, "doctor", "--driver=sim"))
        self.assertIn("cuaudit sweep on the simulated driver: clean", run(tool, "sweep", "--driver=sim", "--host", "--", example, "2"))
        self.assertEqual(run(tool, "env", "--driver=sim", "--", sys.executable, "-c", CLIENT), "cuaudit simulated H200\n")


class Tarball(Packages):
    def test_runs_wherever_it_is_unpacked(self):
        archives = packed("TGZ", self.home / "packed")
        self.assertEqual([path.suffixes[-2:] for path in archives], [[".tar", ".gz"]])
        places = [self.home / "first", self.home / "the second" / "place"]
        for place in places:
            place.mkdir(parents=True)
            run("tar", "-xzf", archives[0], "-C", place)
        roots = [next(place.iterdir()) for place in places]
        for file in ("bin/cuaudit", "lib/cuaudit/libcuda.so.1", "lib/cuaudit/cudart/libcudart.so.13", "include/cuaudit/lifecycle.h",
                     "lib/cmake/cuaudit/cuauditConfig.cmake", "share/man/man1/cuaudit.1", "share/bash-completion/completions/cuaudit",
                     "share/zsh/site-functions/_cuaudit", "share/fish/vendor_completions.d/cuaudit.fish", "share/doc/cuaudit/copyright"):
            self.assertTrue((roots[0] / file).is_file(), file)
        for file in roots[0].rglob("*.cmake"):  # no place of the build in what others read
            self.assertNotIn(str(BUILD), file.read_text(), file)
        # Without a space in its path the loader takes it for audits, too.
        build = self.example(roots[0], "example")
        self.check_program(roots[0] / "bin/cuaudit", build / "copy_frames")
        run("ctest", "--test-dir", build, "--output-on-failure")
        # The first place is gone: nothing may lead there.
        moved = self.home / "moved"
        roots[0].rename(moved)
        self.check_program(moved / "bin/cuaudit", self.example(moved, "again") / "copy_frames")
        self.assertEqual(run(roots[1] / "bin/cuaudit", "env", "--driver=sim", "--", sys.executable, "-c", CLIENT), "cuaudit simulated H200\n")
        self.assertIn("install cuaudit elsewhere", run(roots[1] / "bin/cuaudit", "run", "--driver=sim", "--", "true", status=3))


class Debian(Packages):
    def field(self, package, name):
        return run("dpkg-deb", "--field", package, name).strip()

    def contents(self, package):
        lines = run("dpkg-deb", "--contents", package).splitlines()
        return {re.split(r" \./| -> ", line)[1] for line in lines if not line.startswith("d")}, lines

    def test_two_packages_of_one_installation(self):
        packages = {self.field(path, "Package"): path for path in packed("DEB", self.home / "packed") if path.suffix == ".deb"}
        self.assertEqual(set(packages), {"cuaudit", "cuaudit-sim"})
        sim, _ = self.contents(packages["cuaudit-sim"])
        audit, lines = self.contents(packages["cuaudit"])
        self.assertFalse(sim & audit)
        self.assertTrue(all(" root/root " in line for line in lines))
        for file in ("usr/bin/cuaudit", "usr/lib/cuaudit/libcuda.so.1", "usr/lib/cuaudit/libcuda.so", "usr/lib/cuaudit/cudart/libcudart.so.12",
                     "usr/lib/cuaudit/cudart/libcudart_static.a", "usr/share/man/man1/cuaudit.1", "usr/share/bash-completion/completions/cuaudit",
                     "usr/share/zsh/vendor-completions/_cuaudit", "usr/share/doc/cuaudit-sim/copyright"):
            self.assertIn(file, sim)
        for file in ("usr/lib/cuaudit/libcuaudit_host.so", "usr/lib/cuaudit/libcuaudit_host_basic.so", "usr/include/cuaudit/lifecycle.h",
                     "usr/lib/cmake/cuaudit/cuauditConfig.cmake", "usr/share/doc/cuaudit/copyright", "usr/share/doc/cuaudit/examples/CMakeLists.txt"):
            self.assertIn(file, audit)
        self.assertFalse([file for file in sim if "host" in file or "include" in file or "cmake" in file])
        needs = self.field(packages["cuaudit-sim"], "Depends")
        self.assertRegex(needs, r"libc6 \(>= 2\.")
        self.assertRegex(needs, r"libstdc\+\+6")
        self.assertIn(f"cuaudit-sim (= {self.field(packages['cuaudit-sim'], 'Version')})", self.field(packages["cuaudit"], "Depends"))
        for name, path in packages.items():
            self.assertTrue(self.field(path, "Description"), name)
            self.assertEqual(self.field(path, "Architecture"), run("dpkg", "--print-architecture").strip())
        # Extracted over each other they are the whole installation.
        root = self.home / "root"
        for path in packages.values():
            run("dpkg-deb", "--extract", path, root)
        self.check_program(root / "usr/bin/cuaudit", self.example(root / "usr", "example") / "copy_frames")


class CleanRoot(Packages):
    def test_a_new_debian_has_all_that_they_need(self):
        release = re.search(r"^VERSION_CODENAME=(\w+)", Path("/etc/os-release").read_text(), re.M)[1]
        packages = [path for path in packed("DEB", self.home / "packed") if path.suffix == ".deb"]
        root = self.home / "root"
        made = subprocess.run(["mmdebstrap", "--quiet", "--variant=minbase", "--skip=check/qemu", release, root, *mirrors()], env=CLEAN, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=540)
        if made.returncode != 0:
            self.skipTest(f"no new Debian: {made.stdout.strip().splitlines()[-1]}")
        for path in packages:
            shutil.copy(path, root / "tmp")

        def inside(*command, **options):
            # /proc is mounted for the command alone: nothing stays mounted, however it ends.
            return run("unshare", "--mount", "--propagation", "private", "sh", "-c", 'mount -t proc proc "$1/proc" && exec chroot "$@"', "-", root,
                       "/usr/bin/env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND=noninteractive", *command, **options)

        sim, = [path.name for path in packages if path.name.startswith("cuaudit-sim")]
        audit, = [path.name for path in packages if not path.name.startswith("cuaudit-sim")]
        inside("apt-get", "update", "-qq")
        install = ["apt-get", "install", "-y", "-q", "--no-install-recommends"]
        inside(*install, f"/tmp/{sim}")
        # cuaudit-sim alone: programs run on the simulated driver; an audit says what is missing.
        build = self.example(self.extracted(packages) / "usr", "example")
        shutil.copy(build / "copy_frames", root / "tmp")
        self.assertIn("export LD_LIBRARY_PATH='/usr/lib/cuaudit:/usr/lib/cuaudit/cudart'", inside("cuaudit", "env", "--driver=sim"))
        inside("cuaudit", "env", "--driver=sim", "--", "/tmp/copy_frames", "2")
        self.assertIn("the installation is not whole", inside("cuaudit", "sweep", "--driver=sim", "--", "/tmp/copy_frames", "2", status=3))
        self.assertIn("cuaudit-sim has no audits, cuaudit has", inside("cuaudit", "doctor", status=3))
        inside(*install, f"/tmp/{audit}")
        self.assertIn("--driver=auto   simulated", inside("cuaudit", "doctor"))
        self.assertIn("cuaudit sweep on the simulated driver: clean", inside("cuaudit", "sweep", "--driver=sim", "--host", "--", "/tmp/copy_frames", "2"))
        inside("dpkg", "--remove", "cuaudit", "cuaudit-sim")
        self.assertFalse([str(path) for path in (root / "usr/lib").glob("*cuaudit*")])

    def extracted(self, packages):
        root = self.home / "extracted"
        for path in packages:
            run("dpkg-deb", "--extract", path, root)
        return root


def mirrors():
    """Of this machine's sources the one that Debian itself comes from."""
    for file in [Path("/etc/apt/sources.list"), *sorted(Path("/etc/apt/sources.list.d").glob("*"))]:
        text = file.read_text() if file.is_file() else ""
        found = re.search(r"^(?:URIs:|deb(?: \[.*?\])?)\s+(\S+/debian)/?\s", text + "\n", re.M)
        if found:
            return [found[1]]
    return []


def missing(name):
    tools = {"Tarball": ["cpack", "ninja"], "Debian": ["cpack", "ninja", "dpkg-deb", "dpkg-shlibdeps"],
             "CleanRoot": ["cpack", "ninja", "dpkg-shlibdeps", "mmdebstrap"]}[name]
    for tool in tools:
        if not shutil.which(tool):
            return f"{tool}: not found; scripts/install_packages --all installs it"
    if name == "CleanRoot" and os.geteuid() != 0:
        return "a new Debian needs root"
    return None


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--cuda", required=True)
    parser.add_argument("test", choices=["Tarball", "Debian", "CleanRoot"])
    options = parser.parse_args()
    BUILD, SOURCE, CUDA = options.build.resolve(), options.source.resolve(), options.cuda
    why = missing(options.test)
    if why:
        print(f"skipped: {why}")
        sys.exit(77)
    result = unittest.main(argv=[sys.argv[0], options.test], verbosity=2, exit=False).result
    sys.exit(1 if not result.wasSuccessful() else 77 if result.skipped else 0)
