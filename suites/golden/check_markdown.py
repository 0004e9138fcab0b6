#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Has GitHub's own parser read the golden pages, and finds markup that only a name can have made.

usage: check_markdown.py PAGES
       PAGES is pages one behind the other, each after a line "=== NAME"
exit   0 all as expected, 1 not, 77 the Debian package cmark-gfm is missing
"""
import re
import shutil
import subprocess
import sys

NEVER = ("link", "image", "emph", "strong", "strikethrough", "block_quote", "thematic_break", "code", "softbreak", "linebreak")
OURS = re.compile(r"&lt;/?code&gt;|&lt;/details&gt;\n|&lt;details&gt;&lt;summary&gt;\d+\. ([a-z ]+: )?&lt;code&gt;((?!&lt;).)*&lt;/code&gt;&lt;/summary&gt;\n")


def read(page):
    command = ["cmark-gfm", "--unsafe", "-t", "xml"]
    for extension in ("table", "autolink", "strikethrough"):
        command += ["-e", extension]
    return subprocess.run(command, input=page, capture_output=True, check=True).stdout.decode("utf-8")


def wrong(page):
    """Yields what of the page is markup of a name."""
    parsed = read(page)
    for kind in NEVER:
        if re.search(rf"<{kind}[ />]", parsed):
            yield kind
    for html in re.findall(r"<html_(?:inline|block)[^>]*>([^<]*)<", parsed):
        if not OURS.fullmatch(html):
            yield f"html {html!r}"


def main():
    if shutil.which("cmark-gfm") is None:
        print("skipped: cmark-gfm is not installed")
        return 77
    with open(sys.argv[1], "rb") as file:
        pages = file.read().split(b"=== ")[1:]
    failures = 0
    for page in pages:
        name, text = page.split(b"\n", 1)
        for what in wrong(text):
            failures += 1
            print(f"{name.decode()}: {what}")
    for careless in (b"a <b>c</b>\n", b"| a |\n| - |\n| `b` |\n", b"see https://x.invalid\n", b"- *a*\n", b"> a\n"):
        if not list(wrong(careless)):
            failures += 1
            print(f"nothing is found in {careless!r}")
    print(f"{len(pages)} pages, {failures} failures")
    return 1 if failures or not pages else 0


if __name__ == "__main__":
    sys.exit(main())
