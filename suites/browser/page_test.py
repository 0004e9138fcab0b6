#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""HTML reports in headless Chromium: page_test.py --pages html_pages --axe axe.min.js --directory DIRECTORY [TEST...].

Without names all tests but the accessibility check, Accessible, which needs axe.min.js (scripts/fetch_axe). Exit status 77 without chromium,
chromedriver or python3-selenium, and when a test was skipped.
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
    from page_look import Accessible, Hostile, Large, Look  # pylint: disable=unused-import  # unittest finds the tests in this module
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
    tests = rest or [name for name, one in globals().items() if isinstance(one, type) and issubclass(one, unittest.TestCase) and one is not Accessible]
    result = unittest.main(argv=[sys.argv[0], *tests], exit=False, verbosity=2).result
    return 1 if not result.wasSuccessful() else 77 if result.skipped else 0


if __name__ == "__main__":
    sys.exit(main())
