#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Snapshots as written, read by an independent reader; and that the reader reports what is wrong.

    check_snapshot_test.py SNAPSHOT_SAMPLES
"""
import copy
import pickle
import pickletools
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import read_snapshot

PROGRAM = sys.argv.pop(1)


def samples():
    with tempfile.TemporaryDirectory() as directory:
        done = subprocess.run([PROGRAM, directory], capture_output=True, text=True)
        assert done.returncode == 0 and done.stderr == "", done.stderr
        return {path.name: path.read_bytes() for path in Path(directory).iterdir()}


BYTES = samples()


class Snapshots(unittest.TestCase):
    bytes = BYTES
    read = {name: read_snapshot.read(data) for name, data in BYTES.items()}

    def test_nothing_unfinished_is_left(self):
        self.assertEqual(set(self.bytes), {"empty", "everything", "overflowed", "many", "hostile", "unending"})

    def test_all_can_be_drawn_but_the_one_that_is_wrong(self):
        for name, snapshot in self.read.items():
            found = read_snapshot.problems(snapshot)
            if name == "unending":
                self.assertEqual(len(found), 1, found)
                self.assertIn("never completes", found[0])
            else:
                self.assertEqual(found, [], name)

    def test_python_reads_the_same(self):
        for name, data in self.bytes.items():
            self.assertEqual(pickle.loads(data), self.read[name], name)

    def test_python_knows_every_opcode_and_the_viewer_too(self):
        known = {"PROTO", "STOP", "MARK", "NONE", "NEWTRUE", "NEWFALSE", "BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT", "BINUNICODE", "EMPTY_LIST",
                 "APPENDS", "EMPTY_DICT", "SETITEMS", "TUPLE2", "BINPUT", "LONG_BINPUT", "BINGET", "LONG_BINGET"}
        for name, data in self.bytes.items():
            used = {opcode.name for opcode, _, _ in pickletools.genops(data)}
            self.assertLessEqual(used, known, name)

    def test_states_and_pending_uses(self):
        blocks = self.read["everything"]["segments"][0]["blocks"]
        self.assertEqual([b["state"] for b in blocks], ["active_allocated", "active_pending_free", "inactive"])
        self.assertNotIn("pending_uses", blocks[0])
        self.assertEqual(blocks[1]["pending_uses"], [{"stream": 7, "seq": 91, "captured": False}])
        self.assertEqual([(u["stream"], u["seq"], u["captured"]) for u in blocks[2]["pending_uses"]], [(3, 5, False), (4, 1, True)])
        self.assertEqual([(b.get("in_thread_cache"), b["last_stream"]) for b in blocks], [(None, 11), (None, 11), (True, 12)])
        self.assertEqual(blocks[1]["address"], 0x7F0000000000 + 512)
        graph = self.read["everything"]["segments"][1]
        self.assertEqual((graph["segment_pool_id"], graph["segment_type"], graph["is_expandable"], graph["device"]), ((0, 3), "large", True, 1))

    def test_trace_tells_of_uses(self):
        first, second = self.read["everything"]["device_traces"]
        self.assertEqual([e["action"] for e in first], ["segment_alloc", "alloc", "alloc", "use_recorded", "free_requested", "free_completed", "use_elided",
                                                        "use_waited", "use_waited", "alloc", "free_requested"])
        self.assertEqual(first[9]["user_metadata"], "waited for stream 7 seq 90, stream 8 seq 2")
        self.assertNotIn("user_metadata", first[2])
        self.assertEqual([(first[i]["stream"], first[i]["use_stream"], first[i]["use_seq"]) for i in (3, 6, 7)], [(7, 7, 90), (11, 7, 89), (11, 7, 90)])
        self.assertEqual(second, [{**second[0], "action": "oom", "device_free": 12345, "size": 1 << 40}])

    def test_stacks_are_shared_and_named(self):
        allocated = self.read["everything"]["segments"][0]["blocks"][0]["frames"]
        self.assertGreater(len(allocated), 1)
        self.assertTrue(any("WriteSamples" in frame["name"] for frame in allocated), allocated)
        self.assertEqual(allocated, self.read["everything"]["device_traces"][0][1]["frames"])
        self.assertLess(self.bytes["everything"].count(b"WriteSamples"), 2, "a text is written once")

    def test_what_record_use_means_shows(self):
        told = {name: (self.read[name]["backend"], self.read[name]["record_use"]) for name in ("everything", "hostile")}
        self.assertEqual(told, {"everything": ("native", "at_the_call"), "hostile": ("cudaMallocAsync", "at_the_free")})

    def test_overflow_is_counted(self):
        self.assertEqual(self.read["overflowed"]["trace_overflowed"], 4)
        self.assertEqual(sum(len(trace) for trace in self.read["overflowed"]["device_traces"]), 8)

    def test_long_lists_come_in_batches(self):
        segment = self.read["many"]["segments"][0]
        self.assertEqual(len(segment["blocks"]), 3000)
        self.assertEqual((segment["address"], segment["stream"]), (2**64 - 1 - 2**40, 2**64 - 1))
        self.assertGreater(sum(opcode.name == "APPENDS" for opcode, _, _ in pickletools.genops(self.bytes["many"])), 5)

    def test_settings_have_types_and_texts_are_legible(self):
        settings = self.read["everything"]["allocator_settings"]
        self.assertEqual(settings, {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True", "max_split_size": 2**64 - 1, "garbage_collection_threshold": 0.5,
                                    "expandable_segments": True, "release_lock_on_cudamalloc": False})
        hostile = self.read["hostile"]["allocator_settings"]
        self.assertEqual((hostile["utf8"], hostile["broken"], hostile["empty"], hostile["number-like"]), ("größe 😀", "a???z???", "", "1e999x"))
        self.assertEqual(hostile["key399"], "value 399")


class TheReaderReports(unittest.TestCase):
    """Each rule of read_snapshot broken once."""

    def setUp(self):
        self.snapshot = read_snapshot.read(BYTES["everything"])
        self.trace = self.snapshot["device_traces"][0]
        self.segment = self.snapshot["segments"][0]

    def expect(self, text):
        found = read_snapshot.problems(self.snapshot)
        self.assertTrue(any(text in line for line in found), f"{text!r} in {found}")

    def test_a_free_that_never_ends(self):
        del self.trace[5]
        self.expect("never completes")

    def test_an_alloc_that_vanishes(self):
        self.segment["blocks"][0]["state"] = "inactive"
        self.segment.update(allocated_size=0, active_size=1024, requested_size=1000)
        self.expect("neither freed nor active")

    def test_a_hole_between_blocks(self):
        self.segment["blocks"][1]["address"] += 512
        self.expect("the viewer draws it at")

    def test_sums(self):
        self.segment["active_size"] += 1
        self.expect("active_size")

    def test_a_missing_field(self):
        del self.segment["blocks"][0]["state"]
        self.expect("no state")

    def test_overlapping_segments(self):
        self.snapshot["segments"].append(copy.deepcopy(self.segment))
        self.expect("overlap")

    def test_a_segment_that_is_not_there(self):
        self.trace[0]["size"] += 1  # segment_alloc
        self.expect("is not there afterwards")

    def test_times_that_run_backwards(self):
        self.trace[0]["time_us"] += 10**12
        self.expect("later than the entry that follows it")

    def test_an_unknown_action(self):
        self.trace[3]["action"] = "use_forgotten"
        self.expect("use_forgotten")

    def test_bytes(self):
        good = pickle.dumps({"segments": [], "device_traces": []}, protocol=2)
        for bad, text in ((good[:-1], "ends in the middle"), (good + b"x", "after the end"), (b"\x80\x05.", "protocol"), (b"\x80\x02c__main__\nx\n.", "opcode"),
                          (b"\x80\x02\x8a\x0a" + b"\0" * 10 + b".", "10 bytes"), (b"\x80\x02h\x00.", "before it is written"),
                          (b"\x80\x02Nq\x01.", "would count 0"), (b"\x80\x02}(X\x01\0\0\0aNX\x01\0\0\0aNu.", "twice"),
                          (b"\x80\x02](" + b"N" * 2001 + b"e.", "2001 items")):
            with self.assertRaisesRegex(read_snapshot.Malformed, text):
                read_snapshot.read(bad)


if __name__ == "__main__":
    unittest.main()
