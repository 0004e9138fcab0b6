# SPDX-License-Identifier: MIT
"""Prints the location table of every function of some modules, and the line that the interpreter gives to each code unit.

One line a function: first line, table in hexadecimal, lines. A unit without a location has the line of the last one before it; 0: there is none.
"""
import asyncio.base_events
import contextlib
import ctypes
import dataclasses
import importlib._bootstrap_external
import json.decoder
import threading
import tokenize
import types
import typing

MODULES = (asyncio.base_events, contextlib, ctypes, dataclasses, importlib._bootstrap_external, json.decoder, threading, tokenize, typing)


def show(code):
    lines, last = [], 0
    for line, *_ in code.co_positions():
        last = last if line is None else line
        lines.append(last)
    print(code.co_firstlineno, code.co_linetable.hex(), *lines)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            show(constant)


for module in MODULES:
    with open(module.__file__, encoding="utf-8") as file:
        show(compile(file.read(), module.__file__, "exec"))
