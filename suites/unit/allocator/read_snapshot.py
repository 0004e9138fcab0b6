#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Reads a memory snapshot as pytorch.org/memory_viz does, and says what that viewer could not show.

    read_snapshot.py FILE...

Written from the format, not from our writer: a machine for the opcodes that the viewer knows and no others, then the viewer's own rules:
segments and blocks have the fields it reads, blocks tile their segment, and the trace can be replayed backwards from the segments.
"""
import pickle
import struct
import sys

BATCH = 1000  # of one APPENDS or SETITEMS: the viewer hands them to one call
STATES = {"active_allocated", "active_pending_free", "inactive"}
ACTIONS = {"alloc", "free_requested", "free_completed", "segment_alloc", "segment_free", "segment_map", "segment_unmap", "snapshot", "oom"}
OWN_ACTIONS = {"use_recorded", "use_waited", "use_elided"}
SEGMENT = {"device": int, "address": int, "total_size": int, "allocated_size": int, "active_size": int, "requested_size": int, "stream": int,
           "segment_type": str, "segment_pool_id": tuple, "is_expandable": bool, "frames": list, "blocks": list}
BLOCK = {"address": int, "size": int, "requested_size": int, "state": str, "frames": list}
ENTRY = {"action": str, "size": int, "stream": int, "time_us": int, "frames": list}


class Malformed(Exception):
    pass


class _Mark:
    pass


def read(data):
    """The value of a pickle of protocol 2, 3 or 4 in the viewer's opcodes."""
    mark, stack, memo, at = _Mark(), [], {}, 0

    def take(count):
        nonlocal at
        if at + count > len(data):
            raise Malformed(f"ends in the middle of an opcode at byte {at}")
        at += count
        return data[at - count:at]

    def to_mark():
        place = max((i for i, value in enumerate(stack) if value is mark), default=None)
        if place is None:
            raise Malformed(f"no mark at byte {at}")
        items = stack[place + 1:]
        del stack[place:]
        if len(items) > 2 * BATCH:
            raise Malformed(f"{len(items)} items in one batch at byte {at}")
        return items

    if take(1) != b"\x80" or take(1)[0] not in (2, 3, 4):
        raise Malformed("is no pickle of protocol 2, 3 or 4")
    while True:
        opcode = take(1)
        if opcode == b".":
            break
        elif opcode == b"(":
            stack.append(mark)
        elif opcode == b"N":
            stack.append(None)
        elif opcode in (b"\x88", b"\x89"):
            stack.append(opcode == b"\x88")
        elif opcode == b"J":
            stack.append(struct.unpack("<i", take(4))[0])
        elif opcode == b"K":
            stack.append(take(1)[0])
        elif opcode == b"M":
            stack.append(struct.unpack("<H", take(2))[0])
        elif opcode == b"\x8a":
            size = take(1)[0]
            if size > 9:
                raise Malformed(f"integer of {size} bytes at byte {at}")
            stack.append(int.from_bytes(take(size), "little", signed=True))
        elif opcode == b"G":
            stack.append(struct.unpack(">d", take(8))[0])
        elif opcode == b"X":
            stack.append(take(struct.unpack("<I", take(4))[0]).decode("utf-8"))
        elif opcode == b"]":
            stack.append([])
        elif opcode == b"}":
            stack.append({})
        elif opcode == b"e":
            items = to_mark()
            stack[-1].extend(items)
        elif opcode == b"u":
            items = to_mark()
            if len(items) % 2:
                raise Malformed(f"a key without a value at byte {at}")
            for key, value in zip(items[::2], items[1::2]):
                if key in stack[-1]:
                    raise Malformed(f"key {key!r} twice in one dictionary at byte {at}")
                stack[-1][key] = value
        elif opcode == b"\x86":
            stack[-2:] = [tuple(stack[-2:])]
        elif opcode in (b"q", b"r"):
            number = take(1)[0] if opcode == b"q" else struct.unpack("<I", take(4))[0]
            if number != len(memo):
                raise Malformed(f"memo {number} at byte {at}, the viewer would count {len(memo)}")
            memo[number] = stack[-1]
        elif opcode in (b"h", b"j"):
            number = take(1)[0] if opcode == b"h" else struct.unpack("<I", take(4))[0]
            if number not in memo:
                raise Malformed(f"memo {number} is read before it is written, at byte {at}")
            stack.append(memo[number])
        else:
            raise Malformed(f"opcode {opcode!r} at byte {at - 1}, which the viewer does not know")
    if at != len(data):
        raise Malformed(f"{len(data) - at} bytes after the end")
    if len(stack) != 1:
        raise Malformed(f"{len(stack)} values instead of one")
    return stack[0]


def _fields(what, value, expected):
    for name, kind in expected.items():
        if name not in value:
            yield f"{what}: no {name}"
        elif not isinstance(value[name], kind) or (kind is int and isinstance(value[name], bool)):
            yield f"{what}: {name} is {value[name]!r}"
    for frame in value.get("frames", []):
        if {"filename", "line", "name"} - set(frame):
            yield f"{what}: frame {frame!r}"


def problems(snapshot):
    """What the viewer would stumble over, or show wrongly."""
    found = []
    if not isinstance(snapshot, dict) or not isinstance(snapshot.get("segments"), list) or not isinstance(snapshot.get("device_traces"), list):
        return ["no segments or no device_traces"]
    if not isinstance(snapshot.get("allocator_settings"), dict):
        found.append("no allocator_settings")
    ends = {}
    for number, segment in enumerate(snapshot["segments"]):
        what = f"segment {number}"
        wrong = list(_fields(what, segment, SEGMENT))
        found += wrong
        if wrong:
            continue
        if segment["segment_type"] not in ("small", "large"):
            found.append(f"{what}: type {segment['segment_type']}")
        if not 0 <= segment["device"] < len(snapshot["device_traces"]):
            found.append(f"{what}: device {segment['device']} has no trace")
        sums, address = {"allocated_size": 0, "active_size": 0, "requested_size": 0, "total_size": 0}, segment["address"]
        for place, block in enumerate(segment["blocks"]):
            wrong = list(_fields(f"{what} block {place}", block, BLOCK))
            found += wrong
            if wrong:
                break
            if block["address"] != address:
                found.append(f"{what} block {place}: at {block['address']:#x}, the viewer draws it at {address:#x}")
            if block["state"] not in STATES:
                found.append(f"{what} block {place}: state {block['state']}")
            if block["size"] <= 0 or block["requested_size"] > block["size"]:
                found.append(f"{what} block {place}: {block['requested_size']} bytes requested of {block['size']}")
            for use in block.get("pending_uses", []):
                if {"stream", "seq", "captured"} - set(use):
                    found.append(f"{what} block {place}: pending use {use!r}")
            address += block["size"]
            sums["total_size"] += block["size"]
            if block["state"] == "active_allocated":
                sums["allocated_size"] += block["size"]
            if block["state"] != "inactive":
                sums["active_size"] += block["size"]
                sums["requested_size"] += block["requested_size"]
        for name, value in sums.items():
            if segment[name] != value:
                found.append(f"{what}: {name} is {segment[name]}, its blocks have {value}")
        ends.setdefault(segment["device"], []).append((segment["address"], segment["address"] + segment["total_size"]))
    for device, ranges in ends.items():
        ranges.sort()
        for (first, end), (second, _) in zip(ranges, ranges[1:]):
            if end > second:
                found.append(f"device {device}: segments at {first:#x} and {second:#x} overlap")
    for device, trace in enumerate(snapshot["device_traces"] if not found else []):
        found += _replay(device, trace, [s for s in snapshot["segments"] if s.get("device") == device])
    return found


def _replay(device, trace, segments):
    """Backwards from the segments, as the viewer does it."""
    live, segment_at = {}, {}
    for segment in segments:
        segment_at[segment["address"]] = segment["total_size"]
        for block in segment["blocks"]:
            if block["state"] != "inactive":
                live[block["address"]] = block["state"]
    previous = None
    for number, entry in reversed(list(enumerate(trace))):
        what = f"device {device} trace entry {number}"
        wrong = list(_fields(what, entry, ENTRY))
        if wrong:
            yield from wrong
            continue
        action = entry["action"]
        if action not in ACTIONS | OWN_ACTIONS:
            yield f"{what}: action {action}"
        address = entry.get("device_free" if action == "oom" else "addr")
        if not isinstance(address, int):
            yield f"{what}: no address"
            continue
        if previous is not None and entry["time_us"] > previous:
            yield f"{what}: later than the entry that follows it"
        previous = entry["time_us"]
        if action == "free_completed":
            if address in live:
                yield f"{what}: {address:#x} is freed, and active afterwards without an alloc"
            live[address] = "active_pending_free"
        elif action == "free_requested":
            if live.get(address) != "active_pending_free":
                yield f"{what}: free of {address:#x} never completes and nothing pends there"
            live[address] = "active_allocated"
        elif action == "alloc":
            if live.pop(address, None) != "active_allocated":
                yield f"{what}: {address:#x} is allocated, and afterwards neither freed nor active"
        elif action == "segment_alloc":
            if segment_at.pop(address, None) != entry["size"]:
                yield f"{what}: segment at {address:#x} of {entry['size']} bytes is not there afterwards"
        elif action == "segment_free":
            if address in segment_at:
                yield f"{what}: segment at {address:#x} is freed and there afterwards"
            segment_at[address] = entry["size"]


def main(paths):
    status = 0
    for path in paths:
        with open(path, "rb") as file:
            data = file.read()
        try:
            snapshot = read(data)
            wrong = problems(snapshot)
            if pickle.loads(data) != snapshot:
                wrong.append("Python's own reader reads something else")
        except Malformed as error:
            wrong = [str(error)]
        for line in wrong:
            print(f"{path}: {line}")
        status |= bool(wrong)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
