#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the driver table's generated parts from the installed CUDA headers.

Reads cuda.h, cudaProfiler.h, cudaGL.h, cudaEGL.h and their typedef headers; writes into --out:
  driver_calls.inc    CUAUDIT_CALL(id, base, version, per_thread)      one row per exported symbol, in a stable order
  driver_bases.inc    CUAUDIT_BASE(base, current_id)                   one row per base entry point; current = what cuda.h's macros pick
  driver_params.inc   CUAUDIT_PARAMS(id, (parameters), (arguments))    needs __CUDA_API_VERSION_INTERNAL
  driver_pointers.inc CUAUDIT_POINTERS(id, addresses, arrays)      bit masks over the parameters: which are declared CUdeviceptr (to the
                      compiler a plain unsigned long long, like texture objects and flags), and which point to arrays or to inputs
                      although nothing in their C type says so (kernelParams, options, resources...): those are never read through
  driver_typedefs.inc CUAUDIT_PFN(id, PFN_type)                        the vendor's typedef that must equal the symbol's type
  driver_codes.inc    CUAUDIT_CODES(base, code...)                     result codes the headers document for the base entry point
  driver_results.inc  CUAUDIT_RESULT(name, value)                      the CUresult enumeration
  driver_effects.inc  the rows of effects.def whose entry point these headers have
  driver_observed.inc its result codes that headers do not document
  driver_absent.inc   CUAUDIT_ABSENT_BASE(base)                        rows of effects.def that only newer headers have a function for
  driver_present.inc  #define CUAUDIT_HAS_<id>                         per symbol, for code that names symbols of newer toolkits
  driver_methods.inc  members of DriverRef for the current entry points

The preprocessor resolves the headers' own renaming macros, so nothing about versions is typed by hand. Symbols of one base
pair with that base's typedef versions by rank: oldest suffix with oldest version.
"""
import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HEADERS = ["cuda.h", "cudaProfiler.h", "cudaGL.h", "cudaEGL.h"]
TYPEDEF_HEADERS = ["cudaTypedefs.h", "cudaProfilerTypedefs.h", "cudaGLTypedefs.h", "cudaEGLTypedefs.h"]
DECLARATION = re.compile(r"\bCUresult\s+(cu[A-Z]\w*)\s*\(([^;{}]*)\)\s*;")
TYPEDEF = re.compile(r"typedef\s+CUresult\s*\(\s*\*\s*PFN_(cu\w+?)_v(\d+)(_ptsz|_ptds)?\s*\)\s*\(")
# Parameters that the headers declare like a single output, T*, and that are arrays of results, arrays of inputs or may be junk.
ARRAYS = set("""attributes attrs attrsIdxs capabilities data dataSizes dependencies dependentNodes dptrs dsts edgeData extra from functions
    jitOptions jitOptionsValues kernelParams kernels libraryOptionValues libraryOptions nodes optionValues options pBorderColor pCudaDevices
    prefetchLocIdxs prefetchLocs resources rootNodes sizes srcs to""".split())
SUFFIX = re.compile(r"^(cu\w+?)(?:_v(\d+))?(_ptsz|_ptds)?$")


def fail(message):
    sys.exit(f"gen_driver_table: {message}")


def preprocess(compiler, include, graphics_types, lines):
    with tempfile.NamedTemporaryFile("w", suffix=".cc") as unit:
        unit.write("#define __CUDA_API_VERSION_INTERNAL\n" + "\n".join(lines) + "\n")
        unit.flush()
        command = [compiler, "-E", "-P", f"-I{include}", f"-I{graphics_types}", unit.name]
        done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        fail(f"the preprocessor rejected {include}: {done.stderr.strip().splitlines()[-1]}")
    return done.stdout


def split_symbol(symbol):
    base, version, per_thread = SUFFIX.match(symbol).groups()
    return base, int(version or 1), per_thread or ""


def split_parameters(text):
    text = " ".join(text.split())
    if text in ("", "void"):
        return []
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += (c == "(") - (c == ")")
        if c == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    return parts + [text[start:].strip()]


def name_parameters(parameters):
    """Returns (declarations, names); unnamed parameters get a name, names are kept otherwise."""
    declarations, names = [], []
    for i, parameter in enumerate(parameters):
        match = re.match(r"^(.*[\s*&])(\w+)(\[\d*\])?$", parameter)
        plain_types = {"int", "unsigned", "long", "char", "float", "size_t"}
        if match and match.group(2) not in plain_types and match.group(1).strip() not in ("const", "struct"):
            kind, name = match.group(1).strip(), match.group(2)
            if match.group(3):
                kind += "*"
        else:
            kind, name = parameter, f"a{i}"
        declarations.append((kind, name))
        names.append(name)
    return declarations, names


def documented_codes(include):
    """Base name -> codes of the \\return block. cuda.h documents the name its own macros rename, so both names get them."""
    codes = {}
    for header in HEADERS:
        text = (include / header).read_text(errors="replace")
        renamed = dict(re.findall(r"^\s*#define\s+(cu\w+)\s+(?:__CUDA_API_PT[DS][SZ]\()?(cu\w+)\)?\s*$", text, re.M))
        for match in re.finditer(r"/\*\*((?:(?!\*/).)*)\*/\s*(?:__CUDA_DEPRECATED\s+)?CUresult\s+CUDAAPI\s+(cu\w+)\s*\(", text, re.S):
            comment, name = match.groups()
            returned = re.search(r"\\return(.*?)(?:\\note|\\sa|$)", comment, re.S)
            found = re.findall(r"CUDA_ERROR_\w+", returned.group(1)) if returned else []
            for base in {split_symbol(name)[0], split_symbol(renamed.get(name, name))[0]}:
                for code in found:
                    if code not in codes.setdefault(base, []):
                        codes[base].append(code)
    return codes


def current_symbols(options, headers):
    """Base name -> the symbol that a program gets which includes the headers and defines nothing."""
    command = [options.compiler, "-E", "-P", f"-I{options.include}", f"-I{options.graphics_types}", "-x", "c++", "-"]
    text = subprocess.run(command, input="\n".join(f"#include <{h}>" for h in headers), capture_output=True, text=True, check=True).stdout
    return {split_symbol(name)[0]: name for name, _ in DECLARATION.findall(re.sub(r"__attribute__\s*\(\(.*?\)\)", "", text))}


def rows_of(path, macro):
    """[(base, line)] of an X-macro table."""
    return [(m.group(1), m.group(0)) for m in re.finditer(rf"^{macro}\((\w+),.*\)$", path.read_text(), re.M)]


def classified(effects, bases, version):
    """The rows of effects.def for `bases`; ends with the names of entry points and rows that have no partner."""
    rows = rows_of(effects, "CUAUDIT_EFFECT")
    written_for = int(re.search(r"toolkit (\d+)", effects.read_text()).group(1))
    named = [base for base, _ in rows]
    problems = [f"cu{base} is declared by the headers and has no row" for base in sorted(bases - set(named))]
    problems += [f"cu{base} has more than one row" for base in sorted({b for b in named if named.count(b) > 1})]
    if version >= written_for:
        problems += [f"the row cu{base} names no function of the headers" for base in sorted(set(named) - bases)]
    if problems:
        fail("\n".join(f"{effects.name}: {p}" for p in problems))
    return [line for base, line in rows if base in bases]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--include", type=Path, required=True, help="directory that holds cuda.h")
    parser.add_argument("--graphics-types", type=Path, required=True, help="directory with stand-ins for EGL/ and GL/ headers")
    parser.add_argument("--effects", type=Path, required=True, help="effects.def")
    parser.add_argument("--compiler", default="c++")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    for header in HEADERS + TYPEDEF_HEADERS:
        if not (options.include / header).is_file():
            fail(f"{options.include}: no {header} (expected the include directory of a CUDA toolkit, 12.4 or newer)")

    lines = [f"#include <{h}>" for h in HEADERS]
    declared = preprocess(options.compiler, options.include, options.graphics_types, lines)
    prototypes = {}
    for name, parameters in DECLARATION.findall(re.sub(r"__attribute__\s*\(\(.*?\)\)", "", declared)):
        prototypes.setdefault(name, split_parameters(parameters))
    current = current_symbols(options, HEADERS)
    without_graphics = current_symbols(options, ["cuda.h", "cudaProfiler.h"])

    typedefs = {}
    text = preprocess(options.compiler, options.include, options.graphics_types, [f"#include <{h}>" for h in TYPEDEF_HEADERS])
    for base, version, per_thread in TYPEDEF.findall(text):
        typedefs.setdefault((base, per_thread), set()).add(int(version))

    groups = {}
    for symbol in prototypes:
        base, rank, per_thread = split_symbol(symbol)
        groups.setdefault((base, per_thread), []).append((rank, symbol))
    calls = []
    for (base, per_thread), members in sorted(groups.items()):
        versions = sorted(typedefs.get((base, per_thread), ()))
        members.sort()
        # A toolkit whose typedef header lags its cuda.h leaves newest symbols without a version: 0 means "any version".
        for i, (_, symbol) in enumerate(members):
            calls.append((symbol, base, versions[i] if i < len(versions) else 0, per_thread))
    if len(calls) < 400:
        fail(f"{options.include}: only {len(calls)} entry points found (expected more than 400)")
    calls.sort(key=lambda c: (c[1], c[3], c[2], c[0]))

    marker = "// Generated by scripts/gen_driver_table.py from the CUDA toolkit's headers; do not edit.\n"
    rows = {name: [marker] for name in ("calls", "bases", "params", "pointers", "typedefs", "codes", "results", "methods", "present")}
    for symbol, base, version, per_thread in calls:
        ident = symbol[2:]
        rows["calls"].append(f"CUAUDIT_CALL({ident}, {base[2:]}, {version}, {1 if per_thread else 0})")
        rows["present"].append(f"#define CUAUDIT_HAS_{ident} 1")
        declarations, names = name_parameters(prototypes[symbol])
        listed = ", ".join(f"{kind} {name}" for kind, name in declarations)
        rows["params"].append(f"CUAUDIT_PARAMS({ident}, ({listed}), ({', '.join(names)}))")
        mask = sum(1 << i for i, (kind, _) in enumerate(declarations) if re.match(r"^(const )?CUdeviceptr(_v\d)?\b(?! const)", kind))
        arrays = sum(1 << i for i, (_, name) in enumerate(declarations) if name in ARRAYS)
        rows["pointers"].append(f"CUAUDIT_POINTERS({ident}, {mask:#x}, {arrays:#x})")
        if version:
            rows["typedefs"].append(f"CUAUDIT_PFN({ident}, PFN_{base}_v{version}{per_thread})")
    bases = sorted({base for _, base, _, _ in calls})
    symbols = {c[0] for c in calls}
    for base in bases:
        now = current.get(base, max((c for c in calls if c[1] == base and not c[3]), key=lambda c: c[2])[0])
        if now not in symbols:
            fail(f"{base}: cuda.h picks {now}, which it does not declare")
        rows["bases"].append(f"CUAUDIT_BASE({base[2:]}, {now[2:]})")
        if base in without_graphics:
            declarations, names = name_parameters(prototypes[now])
            listed = ", ".join(f"{kind} {name}" for kind, name in declarations)
            arguments = "".join(f", {name}" for name in names)
            kinds = "".join(f", {kind}" for kind, _ in declarations)
            rows["methods"].append(
                f"[[nodiscard, gnu::always_inline]] CUresult {base[2:]}({listed}) const noexcept {{\n"
                f"  return reinterpret_cast<CUresult (*)(void*{kinds})>(table->entry[Index(CallId::{now[2:]})])(self{arguments});\n}}")
    codes = documented_codes(options.include)
    results = re.findall(r"^\s*(CUDA_SUCCESS|CUDA_ERROR_\w+)\s*=\s*(\d+)", (options.include / "cuda.h").read_text(errors="replace"), re.M)
    known = {name for name, _ in results}
    for base in bases:
        legal = [c for c in codes.get(base, []) if c in known]
        rows["codes"].append(f"CUAUDIT_CODES({base[2:]}{''.join(', ' + c for c in legal)})")
    rows["results"] += [f"CUAUDIT_RESULT({name}, {value})" for name, value in results]

    version = int(re.search(r"#define CUDA_VERSION (\d+)", (options.include / "cuda.h").read_text(errors="replace")).group(1))
    present = {base[2:] for base in bases}
    rows["effects"] = [marker, "#define _ -1", *classified(options.effects, present, version), "#undef _"]
    rows["absent"] = [marker] + [f"CUAUDIT_ABSENT_BASE({base})" for base, _ in rows_of(options.effects, "CUAUDIT_EFFECT") if base not in present]
    rows["observed"] = [marker] + [line for base, line in rows_of(options.effects, "CUAUDIT_OBSERVED") if base in present]
    options.out.mkdir(parents=True, exist_ok=True)
    for name, content in rows.items():
        target = options.out / f"driver_{name}.inc"
        text = "\n".join(content) + "\n"
        if not target.is_file() or target.read_text() != text:
            target.write_text(text)


if __name__ == "__main__":
    main()
