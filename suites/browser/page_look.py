# SPDX-License-Identifier: MIT
"""How a page looks, whatever is on it: themes, paper, narrow windows, nothing from the network, accessibility, nothing cut; hostile names, and ten thousand
findings."""
from selenium.webdriver.common.keys import Keys

from page import PAGES, Page, SETTINGS


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

    def test_nothing_is_cut(self):
        self.open("story", "#case/picture")
        self.all(".strip .cell")[2].click()
        self.run_js("for (const one of document.querySelectorAll('details')) one.open = true")
        labels = self.run_js("return [...document.querySelectorAll('.matrix thead th > span')].map((s) => [s.textContent, s.scrollHeight - s.clientHeight])")
        self.assertTrue(labels)
        self.assertFalse([text for text, hidden in labels if hidden > 1 or text.endswith("…")])
        self.run_js("location.hash = data.defects[0].address")
        self.wait.until(lambda _: self.all(".source"))
        self.assertFalse([one.text for one in self.all(".source") if self.run_js("return arguments[0].scrollWidth > arguments[0].clientWidth", one)])
        self.run_js("location.hash = ''")
        self.wait.until(lambda _: self.all(".gone"))
        lines = self.run_js("""return [...document.querySelectorAll('.gone td:first-child')].map((cell) => {
            const text = document.createRange(); text.selectNodeContents(cell); return text.getClientRects().length})""")
        self.assertEqual(lines, [1, 1])

    def test_nothing_is_asked_of_the_network_and_no_script_fails(self):
        for name in PAGES:
            self.browser.get_log("performance")
            self.open(name)
            asked = [one["message"] for one in self.browser.get_log("performance") if "Network.requestWillBeSent\"" in one["message"]]
            self.assertFalse([one for one in asked if "\"url\":\"http" in one])
            text = (SETTINGS.directory / f"{name}.html").read_text()
            self.assertNotIn(" src=", text.split('<script type="application/json"')[0])
            self.assertFalse(self.errors(), name)


class Accessible(Page):
    def violations(self):
        self.browser.execute_script(SETTINGS.axe.read_text())
        found = self.browser.execute_async_script(
            "const done = arguments[0]; axe.run(document, {resultTypes: ['violations']}).then((r) => done(r.violations.map((v) => "
            "v.id + ': ' + v.help + ': ' + v.nodes.slice(0, 3).map((n) => n.html.slice(0, 160)).join(' | '))))")
        return found

    def test_axe_finds_no_violation(self):
        if not SETTINGS.axe.is_file():
            self.skipTest(f"no {SETTINGS.axe}: scripts/fetch_axe")
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
        size = (SETTINGS.directory / f"{name}.html").stat().st_size
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
