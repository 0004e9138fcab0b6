# SPDX-License-Identifier: MIT
"""Reports that are hard to show: hostile names, and ten thousand findings."""
from selenium.webdriver.common.keys import Keys

from page import Page, SETTINGS


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
