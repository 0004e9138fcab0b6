#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A plan carried out by a real Slurm on this machine writes the report of one local sweep, although a task is killed and requeued.

    slurm_test.py --tool build/dev/bin/cuaudit --program build/dev/bin/e2e/steps

munged, slurmctld and slurmd run in a temporary directory, on loopback and on free ports, and are ended by their process ids. The script of
`cuaudit slurm` is carried out as it is printed, but for the path of the tool: a wrapper holds task 3 of the first array in its second
trial, which waits to end (steps.c), and has Slurm requeue it, which kills it with SIGKILL. Exit status: 0 equal, 1 not, 77 no Slurm here, or
not root.
"""
import argparse
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

SHARDS = 8
KILLED = 3
DAEMONS = ("munged", "slurmctld", "slurmd")
PATH = os.environ["PATH"] + ":/usr/sbin:/usr/local/sbin"

WRAPPER = """#!{python}
import os, select, signal, subprocess, sys
command = [{tool!r}, *sys.argv[1:]]
first = os.environ.get("SLURM_RESTART_COUNT", "0") == "0"
if sys.argv[1] != "run-shard" or os.environ["SLURM_ARRAY_TASK_ID"] != "{killed}" or os.environ["round"] != "1" or not first:
    os.execv(command[0], command)
asks, goes = (os.open(os.path.join({held!r}, name), os.O_RDWR) for name in ("asks", "goes"))
tool = subprocess.Popen(command + ["--jobs", "1"], env={{**os.environ, "STEPS_HELD": {held!r}}})
ended = os.pidfd_open(tool.pid)
log = os.path.join(os.environ["plan"], "work", "1-{killed:04}", "program", "trials.jsonl")
while True:
    if ended in select.select([asks, ended], [], [])[0]:
        sys.exit(f"the tool ended with status {{tool.wait()}} and was not killed")
    os.read(asks, 1)
    if os.path.exists(log) and os.path.getsize(log):
        break
    os.write(goes, b".")
os.kill(tool.pid, signal.SIGSTOP)
subprocess.run(["scontrol", "requeue", os.environ["SLURM_ARRAY_JOB_ID"] + "_{killed}"], check=True)
while True:
    signal.pause()
"""

# cred_expire is also how long a requeued task waits before it starts again; 120 s by default.
CONF = """ClusterName=cuaudit
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={dir}/munge.sock,cred_expire=30
CryptoType=crypto/munge
SlurmctldPort={ctld}
SlurmdPort={slurmd}
StateSaveLocation={dir}/state
SlurmdSpoolDir={dir}/spool
SlurmctldPidFile={dir}/slurmctld.pid
SlurmdPidFile={dir}/slurmd.pid
SlurmctldLogFile={dir}/slurmctld.log
SlurmdLogFile={dir}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
JobRequeue=1
KillWait=1
MpiDefault=none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
JobAcctGatherType=jobacct_gather/none
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0
NodeName={host} NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class Slurm:
    """A cluster of this machine alone; ends with its block."""

    def __init__(self, directory):
        self.dir = directory
        self.environment = {**os.environ, "PATH": PATH, "SLURM_CONF": str(directory / "slurm.conf")}
        self.daemons = []

    def __enter__(self):
        for name in ("state", "spool"):
            (self.dir / name).mkdir()
        key = self.dir / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        ctld, slurmd = free_ports(2)
        (self.dir / "slurm.conf").write_text(CONF.format(host=socket.gethostname().split(".")[0], dir=self.dir, ctld=ctld, slurmd=slurmd))
        at = lambda name: f"{self.dir}/munge.{name}"
        self.start("munged", "--foreground", "--force", f"--key-file={key}", f"--socket={at('sock')}", f"--pid-file={at('pid')}",
                   f"--log-file={at('log')}", f"--seed-file={at('seed')}")
        self.until("munge", "-n", "-S", at("sock"))
        self.start("slurmctld", "-D", "-f", self.environment["SLURM_CONF"])
        self.start("slurmd", "-D", "-f", self.environment["SLURM_CONF"])
        self.until("sinfo", "--noheader", "--states=idle", "--format=%D", holds="1")
        return self

    def __exit__(self, *_):
        for daemon in reversed(self.daemons):
            daemon.send_signal(signal.SIGTERM)
            try:
                daemon.wait(20)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()

    def start(self, *command):
        log = open(self.dir / f"{command[0]}.out", "w")
        self.daemons.append(subprocess.Popen(command, env=self.environment, stdout=log, stderr=log, stdin=subprocess.DEVNULL))

    def run(self, *command, **how):
        return subprocess.run(command, env=self.environment, text=True, capture_output=True, **how)

    # Each call waits for a daemon's answer, or fails at once while there is none.
    def until(self, *command, holds=""):
        for daemon in self.daemons:
            if daemon.poll() is not None:
                raise SystemExit(f"slurm_test: {daemon.args[0]} ended\n" + (self.dir / f"{daemon.args[0]}.out").read_text())
        for _ in range(600):
            outcome = self.run(*command)
            if outcome.returncode == 0 and holds in outcome.stdout:
                return
            try:  # a pause that ends when a daemon does
                self.daemons[-1].wait(0.1)
            except subprocess.TimeoutExpired:
                continue
            break
        raise SystemExit(f"slurm_test: {command} never succeeded: {outcome.stdout}{outcome.stderr}")


def without_header(path):
    report = json.loads(path.read_text())
    del report["header"]
    return json.dumps(report, indent=1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", required=True)
    parser.add_argument("--program", required=True)
    arguments = parser.parse_args()
    missing = [name for name in DAEMONS + ("sbatch", "munge") if shutil.which(name, path=PATH) is None]
    if missing or os.geteuid() != 0:
        print("slurm_test: skipped: " + (f"not installed: {', '.join(missing)}" if missing else "its own Slurm needs root"))
        return 77
    directory = Path(tempfile.mkdtemp(prefix="cuaudit-slurm-"))
    os.chmod(directory, 0o755)  # munged wants nobody else to write above its files
    tool = os.path.abspath(arguments.tool)
    program = [os.path.abspath(arguments.program), "46", "leaking"]
    try:
        with Slurm(directory) as slurm:
            plan, local = directory / "plan", directory / "local.json"
            slurm.run(tool, "sweep", "--driver=sim", f"--format=json={local}", "--", *program)
            planned = slurm.run(tool, "plan", "--driver=sim", "--shards", str(SHARDS), "--to", str(plan), "--", *program)
            print(planned.stdout, planned.stderr)
            held = directory / "held"
            held.mkdir()
            for name in ("asks", "goes"):
                os.mkfifo(held / name)
            wrapper = directory / "wrapper"
            wrapper.write_text(WRAPPER.format(python=sys.executable, tool=tool, killed=KILLED, held=str(held)))
            wrapper.chmod(0o755)
            script = slurm.run(tool, "slurm", str(plan)).stdout
            script, count = re.subn(r"(?m)^tool=.*$", f"tool={wrapper}", script)
            assert count == 1, script
            # The last job has --wait, so that nothing is asked again and again.
            script, count = re.subn(r"(merge=\$\(submit merge merge\.log)", r"\1 --wait", script)
            assert count == 1, script
            submitted = slurm.run("sh", "-c", script, timeout=500)
            print(submitted.stdout, submitted.stderr)
            logs = {path.name: path.read_text() for path in sorted((plan / "logs").iterdir())}
            killed = logs.get(f"first-{KILLED}.log", "")
            report = plan / "report.json"
            if not report.exists():
                print("no report", json.dumps(logs, indent=1), (directory / "slurmctld.log").read_text()[-4000:])
                return 1
            if "going on: " not in killed:
                print(f"task {KILLED} did not go on where it was:\n{killed}")
                return 1
            if without_header(report) != without_header(local):
                print("the reports differ")
                return 1
            print(f"equal: {SHARDS} shards, one killed and requeued")
            return 0
    finally:
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
