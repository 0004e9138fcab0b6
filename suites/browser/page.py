# SPDX-License-Identifier: MIT
"""A page in headless Chromium, as the tests of this folder see it. Importing it needs python3-selenium."""
import shutil
import types
import unittest

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

SETTINGS = types.SimpleNamespace(directory=None, axe=None)  # set by page_test.py
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
        self.browser.get(f"file://{SETTINGS.directory}/{name}.html{address}")
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
