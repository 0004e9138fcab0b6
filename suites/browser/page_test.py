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
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.wait import WebDriverWait
except ImportError:
    print("page_test: skipped: no python3-selenium here")
    sys.exit(77)

ARGUMENTS = None
PAGES = ("story", "many", "calls", "hostile", "clean", "unproved", "growth", "empty")


def start():
    options = Options()
    for switch in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1280,900"):
        options.add_argument(switch)
    options.binary_location = shutil.which("chromium")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.browser = start()
        cls.browser.set_script_timeout(120)
        cls.wait = WebDriverWait(cls.browser, 30, poll_frequency=0.05)

    @classmethod
    def tearDownClass(cls):
        cls.browser.quit()

    def open(self, name, address=""):
        self.browser.get("about:blank")
        self.browser.get(f"file://{ARGUMENTS.directory}/{name}.html{address}")
        self.wait.until(lambda browser: browser.execute_script("return document.documentElement.dataset.ready") == "true")

    def run_js(self, text, *arguments):
        return self.browser.execute_script(text, *arguments)

    def all(self, selector):
        return self.browser.find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector):
        return self.browser.find_element(By.CSS_SELECTOR, selector)

    def text(self, selector="main"):
        return self.one(selector).text

    def press(self, *keys):
        for key in keys:
            ActionChains(self.browser).send_keys(key).perform()

    def hash_becomes(self, wanted):
        self.wait.until(lambda browser: wanted(browser.execute_script("return location.hash")))

    def focused(self):
        return self.run_js("return document.activeElement.dataset.number")

    def media(self, **features):
        listed = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": listed})

    def errors(self):
        return [one["message"] for one in self.browser.get_log("browser") if one["level"] == "SEVERE"]


class Story(Page):
    def test_the_headline_counts_new_defects_and_names_the_simulated_driver(self):
        self.open("story")
        self.assertEqual(self.text("h1"), "1 new defect")
        head = self.text(".head")
        for words in ("1 changed", "1 suppressed", "1 fixed", "1 not run", "compared with v1.2", "simulated driver 13.0", "NVIDIA H200"):
            self.assertIn(words, head)
        self.assertIn("gone: not run: left out by --tag", head)

    def test_new_defects_come_first_and_accepted_ones_last(self):
        self.open("story")
        rows = self.all(".defect")
        self.assertEqual(len(rows), 4)
        self.assertIn("new", rows[0].text)
        self.assertIn("changed", rows[1].text)
        self.assertIn("suppressed", rows[3].text)

    def test_a_click_opens_a_defect_and_the_browser_goes_back(self):
        self.open("story")
        self.all(".defect")[0].click()
        self.hash_becomes(lambda at: at.startswith("#defect/"))
        text = self.text()
        for words in ("picture_alloc returned without cuStreamDestroy", "cuEventCreate#2=OUT_OF_MEMORY,refuse", "missing: cuStreamDestroy",
                      "cuaudit replay --driver=sim", "Acquired", "Released here without the fault", "and 4 more calls that this report does not hold"):
            self.assertIn(words, text)
        self.assertIn("finding.title", self.text(".source .here"))
        self.browser.back()
        self.wait.until(lambda _: len(self.all(".defect")) == 4)

    def test_each_defect_has_an_address_that_opens_it(self):
        self.open("story")
        addresses = [row.get_attribute("href").split("#")[1] for row in self.all(".defect")]
        self.assertEqual(len(set(addresses)), 4)
        for address in addresses:
            self.open("story", "#" + address)
            self.assertEqual(len(self.all("article")), 1, address)

    def test_the_filter_keeps_what_matches_every_word(self):
        self.open("story")
        self.one("#filter").send_keys("growth state_init")
        self.wait.until(lambda _: len(self.all(".defect")) == 1)
        self.assertIn("1 of 4 defects", self.text())
        self.one("#filter").send_keys(" nowhere")
        self.wait.until(lambda _: not self.all(".defect"))

    def test_chips_show_one_sort_of_change(self):
        self.open("story")
        [chip] = [one for one in self.all(".chips button") if one.text.startswith("suppressed")]
        chip.click()
        self.assertEqual(len(self.all(".defect")), 1)
        self.assertEqual(chip.get_attribute("aria-pressed"), "true")

    def test_the_order_can_be_chosen(self):
        self.open("story")
        self.run_js("const s = document.getElementById('sort'); s.value = 'rule'; s.dispatchEvent(new Event('change'))")
        rules = [row.text for row in self.all(".defect .rule")]
        self.assertEqual(rules, sorted(rules))

    def test_the_keyboard_alone_is_enough(self):
        self.open("story")
        self.press("j", "j")
        self.assertEqual(self.focused(), "1")
        self.press("k")
        self.assertEqual(self.focused(), "0")
        self.press(Keys.ENTER)
        self.hash_becomes(lambda at: at.startswith("#defect/"))
        first = self.run_js("return location.hash")
        self.press("j")
        self.hash_becomes(lambda at: at.startswith("#defect/") and at != first)
        self.press("u")
        self.hash_becomes(lambda at: at == "")
        self.wait.until(lambda _: self.focused() == "1")  # where the reader was
        self.press("/")
        self.wait.until(lambda browser: browser.execute_script("return document.activeElement.id") == "filter")
        self.press("j")
        self.assertEqual(self.one("#filter").get_attribute("value"), "j")
        self.press(Keys.ESCAPE, "?")
        self.wait.until(lambda browser: browser.execute_script("return document.getElementById('keys').open"))

    def test_the_reproduce_command_is_copied(self):
        self.browser.execute_cdp_cmd("Browser.grantPermissions", {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]})
        self.open("story")
        self.press("j", Keys.ENTER)
        self.hash_becomes(lambda at: at.startswith("#defect/"))
        self.press("c")
        self.wait.until(lambda _: self.text("#said") in ("Copied", "Selected: press Ctrl+C"))
        if self.text("#said") == "Copied":
            got = self.browser.execute_async_script("const done = arguments[0]; navigator.clipboard.readText().then(done, (e) => done('' + e))")
        else:
            got = self.run_js("return getSelection().toString()")
        self.assertEqual(got, "cuaudit replay --driver=sim --fault 'cuEventCreate#2=OUT_OF_MEMORY,refuse' -- ./player --frames 30")

    def test_a_strip_shows_the_worst_of_each_call_and_opens(self):
        self.open("story", "#case/picture")
        cells = self.all(".strip .cell")
        self.assertEqual([cell.text for cell in cells], ["", "C", "L", "T", "", "", "?"])
        self.assertIn("after a second fault: a rule of the driver was broken", cells[2].get_attribute("aria-label"))
        self.assertIn("worse after a second fault", self.text(".legend"))
        self.assertEqual([one.text for one in self.all(".phase")], ["init", "work", "teardown"])
        cells[2].click()
        panel = self.text(".panel")
        self.assertIn("cuMemAlloc#1=OUT_OF_MEMORY,refuse", panel)
        self.assertIn("something is left", panel)
        self.one(".panel .matrix button").click()
        self.assertIn("then cuCtxDestroy#1=INVALID_CONTEXT,refuse", self.text(".panel"))
        self.one(".panel a").click()
        self.hash_becomes(lambda at: at.startswith("#defect/"))

    def test_arrows_go_along_a_strip(self):
        self.open("story", "#case/picture")
        self.run_js("document.querySelector('.strip .cell').focus()")
        self.press(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ENTER)
        self.assertIn("call 3", self.text(".panel"))

    def test_what_the_base_alone_has_is_told_apart(self):
        self.open("story")
        text = self.text()
        self.assertIn("Not looked for again", text)
        self.assertIn("its case was left out", text)
        self.assertLess(text.index("Not looked for again"), text.index("Fixed"))
        self.assertIn("suppressions.toml:12", text)


class Growth(Page):
    def test_growth_is_plotted(self):
        self.open("growth")
        self.wait.until(lambda _: len(self.all(".plot canvas")) == 2)
        self.assertIn("2 more a cycle", self.text())
        self.assertIn("1 place did not grow", self.text())
        self.assertEqual(self.all(".plot [role=img]")[0].get_attribute("aria-label"), "2 after 1 cycle, 20 after 10 cycles")
        painted = self.run_js("""const c = document.querySelector('.plot canvas'); const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
            const seen = new Set(); for (let i = 0; i < d.length; i += 4) if (d[i + 3] > 200) seen.add((d[i] >> 6) + ',' + (d[i + 1] >> 6)); return seen.size""")
        self.assertGreater(painted, 2)

    def test_a_page_without_growth_carries_no_plot_library(self):
        self.assertNotIn("leeoniya", (ARGUMENTS.directory / "clean.html").read_text())
        growth = (ARGUMENTS.directory / "growth.html").read_text()
        self.assertIn("Permission is hereby granted", growth)


class Outcomes(Page):
    def test_a_clean_audit_says_so(self):
        self.open("clean")
        self.assertEqual(self.text("h1"), "No defects")

    def test_what_proved_nothing_is_not_clean(self):
        self.open("unproved")
        self.assertEqual(self.text("h1"), "Nothing is proved")
        self.assertIn("not exercised", self.text(".warn"))

    def test_an_audit_of_nothing_opens(self):
        self.open("empty")
        self.assertEqual(self.text("h1"), "Nothing is proved")


class Hostile(Page):
    def test_no_name_becomes_markup(self):
        self.open("hostile")
        for address in ["", "#case/" + "x"] + ["#" + one for one in self.run_js("return data.defects.map((d) => d.address)")]:
            self.run_js("location.hash = arguments[0]", address)
            self.wait.until(lambda browser: browser.execute_script("return document.querySelector('main').textContent.length > 0"))
            self.assertFalse(self.all("main img, main script, main style, main iframe, main [onerror]"), address)
            self.assertNotIn("owned", self.run_js("return document.title").replace("title='owned'", ""))
            links = self.run_js("return [...document.querySelectorAll('a')].map((a) => a.getAttribute('href'))")
            self.assertTrue(all(link.startswith("#") for link in links), links)
        self.assertEqual(len(self.all("script")), len(self.run_js("return [...document.scripts]")))
        self.assertLessEqual(len(self.all("script")), 3)

    def test_the_page_of_the_case_with_a_hostile_name_opens(self):
        self.open("hostile")
        self.run_js("location.hash = 'case/' + encodeURIComponent(data.cases[0].name)")
        self.wait.until(lambda _: self.all(".strip .cell"))
        self.all(".strip .cell")[2].click()
        self.assertIn("</script><img", self.text(".panel"))
        self.assertFalse(self.all("main img"))

    def test_control_and_direction_characters_are_written_out(self):
        self.open("hostile")
        shown = self.run_js("return document.querySelector('main').textContent")
        for code in (0x1, 0x1B, 0x202E, 0x2028):
            self.assertNotIn(chr(code), shown)
        self.assertIn("\\u{1b}", shown)
        self.assertIn("\\u{202e}", shown)

    def test_a_long_name_does_not_widen_the_page(self):
        self.open("hostile")
        for address in self.run_js("return ['', ...data.defects.map((d) => d.address)]"):
            self.run_js("location.hash = arguments[0]", address)
            self.wait.until(lambda browser: browser.execute_script("return document.documentElement.scrollWidth <= innerWidth"), address)

    def test_the_command_is_copied_as_it_is(self):
        self.open("hostile")
        self.assertTrue(self.run_js("return data.findings.some((f) => f.reproduce.includes('</script><img'))"))


class Large(Page):
    def open_timed(self, name):
        self.open(name)
        times = self.run_js("const n = performance.getEntriesByType('navigation')[0]; return [n.loadEventEnd, document.querySelectorAll('*').length]")
        size = (ARGUMENTS.directory / f"{name}.html").stat().st_size
        print(f"measured: {name}.html, {size / 1e6:.1f} MB: open after {times[0]:.0f} ms, {times[1]} elements")
        self.assertLess(times[1], 6000)  # what is far below is not made

    def test_ten_thousand_defects_open_and_are_all_there(self):
        self.open_timed("many")
        self.assertEqual(self.text("h1"), "10000 defects")
        self.one("#filter").send_keys("make_buffer_9999")
        self.wait.until(lambda _: len(self.all(".defect")) == 1)
        self.one("#filter").clear()
        self.one("#filter").send_keys("make_buffer_7")
        self.wait.until(lambda _: "1111 of 10000" in self.text())

    def test_scrolling_makes_more_rows(self):
        self.open("many")
        before = len(self.all(".defect"))
        self.run_js("scrollTo(0, document.documentElement.scrollHeight)")
        self.wait.until(lambda _: len(self.all(".defect")) > before)

    def test_the_keyboard_goes_beyond_what_was_drawn(self):
        self.open("many")
        self.press(*["j"] * 103)
        self.assertEqual(self.focused(), "102")

    def test_paper_gets_all_rows(self):
        self.open("many")
        self.run_js("dispatchEvent(new Event('beforeprint'))")
        self.assertEqual(self.run_js("return document.querySelectorAll('.defect').length"), 10000)

    def test_ten_thousand_findings_of_a_few_defects_open(self):
        self.open_timed("calls")
        self.press("j", Keys.ENTER)
        self.hash_becomes(lambda at: at.startswith("#defect/"))
        self.assertLess(self.run_js("return document.querySelectorAll('*').length"), 6000)
        [more] = self.all("main button.more")
        self.assertEqual(more.text, "Show 449 more")
        more.click()
        self.assertGreater(len(self.all("tbody tr")), 498)


class Look(Page):
    def test_dark_mode_follows_the_system_and_can_be_chosen(self):
        ground = "return getComputedStyle(document.body).backgroundColor"
        self.media(prefers_color_scheme="light")
        self.open("story")
        self.assertEqual(self.run_js(ground), "rgb(255, 255, 255)")
        self.media(prefers_color_scheme="dark")
        dark = self.run_js(ground)
        self.assertNotEqual(dark, "rgb(255, 255, 255)")
        self.one("#theme").click()
        self.assertEqual(self.text("#theme"), "Theme: light")
        self.assertEqual(self.run_js(ground), "rgb(255, 255, 255)")
        self.open("story")  # the choice is kept
        self.assertEqual(self.run_js(ground), "rgb(255, 255, 255)")
        self.one("#theme").click()
        self.media(prefers_color_scheme="light")
        self.assertEqual(self.run_js(ground), dark)
        self.one("#theme").click()
        self.assertEqual(self.text("#theme"), "Theme: auto")

    def test_paper_leaves_out_what_only_a_screen_can_do(self):
        self.open("story")
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print", "features": []})
        hidden = self.run_js("return ['.bar', '.tools'].map((s) => getComputedStyle(document.querySelector(s)).display)")
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})
        self.assertEqual(hidden, ["none", "none"])

    def test_a_narrow_window_has_no_sideways_scroll(self):
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": 400, "height": 800, "deviceScaleFactor": 1, "mobile": True})
        try:
            for address in ("", "#case/picture"):
                self.open("story", address)
                self.assertLessEqual(self.run_js("return document.documentElement.scrollWidth"), 400, address)
        finally:
            self.browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})

    def test_nothing_is_asked_of_the_network_and_no_script_fails(self):
        for name in PAGES:
            self.browser.get_log("performance")
            self.open(name)
            asked = [one["message"] for one in self.browser.get_log("performance") if "Network.requestWillBeSent\"" in one["message"]]
            self.assertFalse([one for one in asked if "\"url\":\"http" in one])
            text = (ARGUMENTS.directory / f"{name}.html").read_text()
            self.assertNotIn(" src=", text.split('<script type="application/json"')[0])
            self.assertFalse(self.errors(), name)


class Accessible(Page):
    def violations(self):
        self.browser.execute_script(ARGUMENTS.axe.read_text())
        found = self.browser.execute_async_script(
            "const done = arguments[0]; axe.run(document, {resultTypes: ['violations']}).then((r) => done(r.violations.map((v) => "
            "v.id + ': ' + v.help + ': ' + v.nodes.slice(0, 3).map((n) => n.html.slice(0, 160)).join(' | '))))")
        return found

    def test_axe_finds_no_violation(self):
        if not ARGUMENTS.axe.is_file():
            self.skipTest(f"no {ARGUMENTS.axe}: scripts/fetch_axe")
        for scheme in ("light", "dark"):
            self.media(prefers_color_scheme=scheme)
            for name, address in (("story", ""), ("story", "#case/picture"), ("story", "defect"), ("growth", ""), ("hostile", ""), ("clean", ""), ("unproved", "")):
                with self.subTest(scheme=scheme, page=name, address=address):
                    self.open(name, "" if address == "defect" else address)
                    if address == "defect":
                        self.run_js("location.hash = data.defects[0].address")
                        self.wait.until(lambda _: self.all("article"))
                    if address.startswith("#case"):
                        self.all(".strip .cell")[2].click()
                        self.run_js("for (const one of document.querySelectorAll('details')) one.open = true")
                    self.assertEqual(self.violations(), [])


def main():
    global ARGUMENTS
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", required=True, type=pathlib.Path)
    parser.add_argument("--axe", required=True, type=pathlib.Path)
    parser.add_argument("--directory", required=True, type=pathlib.Path)
    ARGUMENTS, rest = parser.parse_known_args()
    ARGUMENTS.directory = ARGUMENTS.directory.resolve()  # a browser takes a relative path for a host
    missing = [one for one in ("chromium", "chromedriver") if shutil.which(one) is None]
    if missing:
        print(f"page_test: skipped: no {' and no '.join(missing)} here")
        return 77
    ARGUMENTS.directory.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("SE_OFFLINE", "true")  # selenium takes the driver that is named, and asks nobody for another
    subprocess.run([ARGUMENTS.pages, ARGUMENTS.directory], check=True)
    return 0 if unittest.main(argv=[sys.argv[0], *rest], exit=False, verbosity=2).result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
