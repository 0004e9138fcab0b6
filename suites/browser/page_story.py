# SPDX-License-Identifier: MIT
"""What a reader does with a report: defects, filter, keyboard, strip of calls, growth, and what an outcome says."""
from selenium.webdriver.common.keys import Keys

from page import Page, SETTINGS


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
        self.assertNotIn("leak leak:", text)  # the title of a defect begins with its rule


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
        self.assertNotIn("leeoniya", (SETTINGS.directory / "clean.html").read_text())
        growth = (SETTINGS.directory / "growth.html").read_text()
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
