# SPDX-License-Identifier: MIT
"""How a page looks: themes, paper, narrow windows, nothing from the network, accessibility, nothing cut."""
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
