#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes docs/screenshots anew: screenshots.py --cuaudit build/dev/bin/cuaudit --reducers build/dev/bin/reducers --out docs/screenshots.

The pages are those of reducers of this tree, audited on the simulated driver, and of examples/releases/story. Needs chromium, chromedriver and
python3-selenium; shrinks the pictures when python3-pil is there.
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


def settled(page):
    page.execute_async_script("const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 0)))")


def resize(page, height):
    page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": WIDTH, "height": height, "deviceScaleFactor": 1, "mobile": False})


def shoot(page, html, file, most, script="", dark=False):
    """The top of the page after each line of `script`, as high as the page is, but at most so many pixels."""
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]})
    resize(page, most)
    page.get("about:blank")
    page.get(f"file://{html}")
    for line in filter(None, script.split("\n")):
        page.execute_script(line)
        settled(page)
    end = page.execute_script("const last = document.querySelector('main').lastElementChild.getBoundingClientRect(); return Math.ceil(last.bottom) + 24")
    resize(page, min(most, end))
    settled(page)
    page.save_screenshot(str(file))
    try:
        from PIL import Image
        Image.open(file).convert("RGB").quantize(256, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(file, optimize=True)
    except ImportError:
        pass
    print(f"{file}: {file.stat().st_size} bytes")


ROOT = pathlib.Path(__file__).resolve().parents[2]

# The call with the most second faults.
SECONDS = ("const s = data.runs[0].sequence; const n = s.calls.map(() => 0); for (const t of s.trials) if (t[3].length > 0) ++n[t[0]]; "
           "document.querySelectorAll('.strip .cell')[n.indexOf(Math.max(...n))].click()\n"
           "document.querySelector('.legend').previousElementSibling.scrollIntoView()")
FIRST_NEW = "location.hash = data.defects.find((one) => one.change === 'new').address"


def run(command, environment, directory, expected):
    done = subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != expected:
        raise SystemExit(f"{command[0]}: exit status {done.returncode}\n{done.stdout}{done.stderr}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cuaudit", required=True, type=pathlib.Path)
    parser.add_argument("--reducers", required=True, type=pathlib.Path, help="folder of the built reducers")
    parser.add_argument("--out", required=True, type=pathlib.Path)
    arguments = parser.parse_args()
    out = arguments.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        swept = pathlib.Path(temporary, "swept.html")
        story = pathlib.Path(temporary, "story")
        program = pathlib.Path(arguments.reducers, "picture_pool_defective").resolve()
        # The command in the picture is the one that a reader types.
        environment = dict(os.environ, PATH=f"{arguments.cuaudit.resolve().parent}:{os.environ['PATH']}", SOURCE_DATE_EPOCH="1767225600")
        run(["cuaudit", "sweep", "--driver=sim", "--host", "--source-root", str(ROOT), "--format", f"html={swept}", "--", f"./{program.name}"],
            environment, program.parent, 1)
        run([str(ROOT / "examples/releases/story"), str(story)], environment, temporary, 0)
        page = browser()
        shoot(page, swept, out / "defects.png", 764)
        shoot(page, swept, out / "defect.png", 1180, "location.hash = data.defects[0].address")
        shoot(page, swept, out / "calls.png", 860, SECONDS, True)
        shoot(page, story / "1.1.html", out / "comparison.png", 1000)
        shoot(page, story / "1.1.html", out / "regression.png", 1480, FIRST_NEW)
        shoot(page, story / "1.2.html", out / "repaired.png", 1000)
        page.quit()
    return 0


if __name__ == "__main__":
    sys.exit(main())
