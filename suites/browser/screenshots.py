#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes docs/screenshots anew: screenshots.py --cuaudit build/dev/bin/cuaudit --reducers build/dev/bin/reducers --out docs/screenshots.

The pages are those of reducers of this tree, audited on the simulated driver. Needs chromium, chromedriver and python3-selenium; shrinks the
pictures when python3-pil is there.
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

WIDTH = 1180


def browser():
    options = Options()
    for switch in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--window-size={WIDTH},900"):
        options.add_argument(switch)
    options.binary_location = shutil.which("chromium")
    return webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))


def shoot(page, html, file, height, script="", dark=False):
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]})
    page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": WIDTH, "height": height, "deviceScaleFactor": 1, "mobile": False})
    page.get("about:blank")
    page.get(f"file://{html}")
    for line in filter(None, script.split("\n")):
        page.execute_script(line)
        page.execute_async_script("const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 0)))")
    page.save_screenshot(str(file))
    try:
        from PIL import Image
        Image.open(file).convert("RGB").quantize(64, dither=Image.Dither.NONE).save(file, optimize=True)
    except ImportError:
        pass
    print(f"{file}: {file.stat().st_size} bytes")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cuaudit", required=True, type=pathlib.Path)
    parser.add_argument("--reducers", required=True, type=pathlib.Path, help="folder of the built reducers")
    parser.add_argument("--out", required=True, type=pathlib.Path)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        swept = pathlib.Path(temporary, "swept.html")
        program = pathlib.Path(arguments.reducers, "picture_pool_defective").resolve()
        # The command in the picture is the one that a reader types.
        environment = dict(os.environ, PATH=f"{arguments.cuaudit.resolve().parent}:{os.environ['PATH']}", SOURCE_DATE_EPOCH="1767225600")
        done = subprocess.run(["cuaudit", "sweep", "--driver=sim", "--host", "--source-root", str(pathlib.Path(__file__).resolve().parents[2]),
                               "--format", f"html={swept}", "--", f"./{program.name}"],
                              cwd=program.parent, env=environment, capture_output=True, text=True, check=False)
        if done.returncode != 1:
            print(done.stderr, file=sys.stderr)
            return 1
        page = browser()
        shoot(page, swept, arguments.out / "defects.png", 820)
        shoot(page, swept, arguments.out / "defect.png", 1180, "location.hash = data.defects[0].address")
        seconds = ("const s = data.runs[0].sequence; const n = s.calls.map(() => 0); for (const t of s.trials) if (t[3].length > 0) ++n[t[0]]; "
                   "document.querySelectorAll('.strip .cell')[n.indexOf(Math.max(...n))].click()")
        shoot(page, swept, arguments.out / "calls.png", 900, seconds + "\ndocument.querySelector('.legend').previousElementSibling.scrollIntoView()", True)
        page.quit()
    return 0


if __name__ == "__main__":
    sys.exit(main())
