#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""HTML reports in headless Chromium: page_test.py --pages html_pages --axe axe.min.js --directory DIRECTORY.

Exit status 77 without chromium, chromedriver or python3-selenium. Without axe.min.js (scripts/fetch_axe) the accessibility check is
skipped, and said so.
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

try:
    import page
    from page_content import Hostile, Large  # pylint: disable=unused-import  # unittest finds the tests in this module
    from page_look import Accessible, Look  # pylint: disable=unused-import
    from page_story import Growth, Outcomes, Story  # pylint: disable=unused-import
except ImportError as error:
    if error.name is None or not error.name.startswith("selenium"):
        raise
    print("page_test: skipped: no python3-selenium here")
    sys.exit(77)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", required=True, type=pathlib.Path)
    parser.add_argument("--axe", required=True, type=pathlib.Path)
    parser.add_argument("--directory", required=True, type=pathlib.Path)
    arguments, rest = parser.parse_known_args()
    arguments.directory = arguments.directory.resolve()  # a browser takes a relative path for a host
    page.SETTINGS.directory, page.SETTINGS.axe = arguments.directory, arguments.axe
    missing = [one for one in ("chromium", "chromedriver") if shutil.which(one) is None]
    if missing:
        print(f"page_test: skipped: no {' and no '.join(missing)} here")
        return 77
    arguments.directory.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("SE_OFFLINE", "true")  # selenium takes the driver that is named, and asks nobody for another
    subprocess.run([arguments.pages, arguments.directory], check=True)
    return 0 if unittest.main(argv=[sys.argv[0], *rest], exit=False, verbosity=2).result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
