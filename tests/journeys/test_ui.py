"""The first page in a real browser: search, read, keys, and text that stays text."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.common.exceptions import NoAlertPresentException
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

from tests.world_server.conftest import stub_process
from tests.world_server.stub import DEAD, NOTHING, XSS, XSS_TEXT, XSS_TITLE

PATIENCE = 30.0
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage", "--window-size=1280,900",
)  # fmt: skip

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Return the address of a server on the stub."""
    with stub_process(delay=0.0) as server:
        yield f"http://127.0.0.1:{server.port}"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    """Return a headless Chromium with a profile of its own."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    driver = shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("no browser: chromium and chromedriver are not installed")
    options = Options()
    options.binary_location = chromium
    for flag in FLAGS:
        options.add_argument(flag)
    options.add_argument(f"--user-data-dir={tmp_path_factory.mktemp('profile')}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    options.set_capability("unhandledPromptBehavior", "ignore")
    started = webdriver.Chrome(options=options, service=Service(driver))
    yield started
    started.quit()


def wait(browser: webdriver.Chrome, condition: str) -> None:
    """Wait until a JavaScript expression is true."""
    WebDriverWait(browser, PATIENCE, 0.05).until(
        lambda one: one.execute_script(f"return Boolean({condition})")
    )


def at(browser: webdriver.Chrome, name: str) -> WebElement:
    return browser.find_element(By.ID, name)


def has_focus(browser: webdriver.Chrome, selector: str) -> bool:
    return bool(browser.execute_script(f"return document.activeElement.matches('{selector}')"))


def test_a_search_shows_hits_with_their_score_parts(
    browser: webdriver.Chrome, address: str
) -> None:
    browser.get(f"{address}/")
    assert has_focus(browser, "#query")
    at(browser, "query").send_keys("lighthouse keeper", Keys.ENTER)
    wait(browser, "document.querySelectorAll('.hit').length === 10")
    first = browser.find_element(By.CSS_SELECTOR, ".hit")
    assert "Page 0" in first.text
    assert "https://site0.example/page/0" in first.text
    assert "Snippet of page 0." in first.text
    assert first.find_element(By.CSS_SELECTOR, ".part.lexical").text.split() == [
        "lexical", "1.000", "#1",
    ]  # fmt: skip
    assert len(first.find_elements(By.CSS_SELECTOR, "meter")) == 2
    ninth = browser.find_elements(By.CSS_SELECTOR, ".hit")[9]
    assert ninth.find_element(By.CSS_SELECTOR, ".part.sparse").text.split() == [
        "sparse", "0.250", "#2",
    ]  # fmt: skip
    assert ninth.find_element(By.CSS_SELECTOR, ".part.rerank").text.split() == ["rerank", "-15"]
    at(browser, "more").click()
    wait(browser, "document.querySelectorAll('.hit').length === 20")
    assert "q=lighthouse+keeper" in browser.current_url
    assert "stub@1" in at(browser, "about").text


def test_a_page_opens_beside_the_hits_and_closes_by_key(
    browser: webdriver.Chrome, address: str
) -> None:
    browser.get(f"{address}/?q=lighthouse")
    wait(browser, "document.querySelectorAll('.hit').length === 10")
    browser.find_elements(By.CSS_SELECTOR, ".hit")[2].click()
    wait(browser, "!document.getElementById('reader').hidden")
    assert at(browser, "title").text == "Page 2"
    assert "The **tower** was lit in" in at(browser, "text").text
    assert "2021-03-06" in at(browser, "facts").text
    current = browser.find_element(By.CSS_SELECTOR, ".hit[aria-current='true']")
    assert "Page 2" in current.text
    browser.switch_to.active_element.send_keys(Keys.ESCAPE)
    wait(browser, "document.getElementById('reader').hidden")
    assert has_focus(browser, '.hit[aria-current="true"]')


def test_links_of_a_page_are_followed_inside_the_world(
    browser: webdriver.Chrome, address: str
) -> None:
    browser.get(f"{address}/?open=https://site2.example/page/2")
    wait(browser, "!document.getElementById('reader').hidden")
    at(browser, "links-count").click()
    browser.find_element(By.CSS_SELECTOR, "#links button").click()
    wait(browser, "document.getElementById('title').textContent === 'Page 1'")
    assert browser.current_url.startswith(address)


def test_it_is_moved_through_by_keys_alone(browser: webdriver.Chrome, address: str) -> None:
    browser.get(f"{address}/?q=lighthouse")
    wait(browser, "document.querySelectorAll('.hit').length === 10")
    box = at(browser, "query")
    box.send_keys(Keys.ARROW_DOWN)
    browser.switch_to.active_element.send_keys(Keys.ARROW_DOWN)
    assert "Page 1" in browser.switch_to.active_element.text
    browser.switch_to.active_element.send_keys(Keys.ENTER)
    wait(browser, "document.getElementById('title').textContent === 'Page 1'")
    browser.switch_to.active_element.send_keys("/")
    assert has_focus(browser, "#query")


def test_the_index_is_chosen(browser: webdriver.Chrome, address: str) -> None:
    browser.get(f"{address}/?q=lighthouse")
    wait(browser, "document.querySelectorAll('.hit').length === 10")
    browser.find_element(By.CSS_SELECTOR, "input[value='lexical']").click()
    wait(browser, "location.search.includes('mode=lexical')")
    browser.get(browser.current_url)
    wait(browser, "document.querySelector(\"input[value='lexical']\").checked")


@pytest.mark.parametrize(
    ("query", "said"),
    [(NOTHING, "The world has nothing for this query."), ("x" * 100_001, "query")],
)
def test_what_goes_wrong_is_said(
    browser: webdriver.Chrome, address: str, query: str, said: str
) -> None:
    browser.get(f"{address}/")
    browser.execute_script("document.getElementById('query').value = arguments[0]", query)
    at(browser, "query").send_keys(Keys.ENTER)
    wait(browser, f"document.getElementById('status').textContent.includes('{said}')")
    assert browser.find_elements(By.CSS_SELECTOR, ".hit") == []


def test_an_address_is_read_and_a_dead_one_is_said(browser: webdriver.Chrome, address: str) -> None:
    browser.get(f"{address}/")
    at(browser, "query").send_keys(DEAD, Keys.ENTER)
    wait(browser, "document.getElementById('text').textContent.includes('the error 404')")
    browser.get(f"{address}/?open=https://nowhere.example/")
    wait(browser, "document.getElementById('text').textContent.includes('not in the world')")


def test_stored_scripts_stay_text(browser: webdriver.Chrome, address: str) -> None:
    browser.get(f"{address}/?open={XSS}")
    wait(browser, "!document.getElementById('reader').hidden")
    assert at(browser, "title").text == XSS_TITLE
    assert at(browser, "text").text == XSS_TEXT
    browser.execute_async_script("setTimeout(arguments[0], 500)")
    with pytest.raises(NoAlertPresentException):
        _ = browser.switch_to.alert.text
    assert (
        browser.execute_script(
            "return document.querySelectorAll('#reader script, #reader img').length"
        )
        == 0
    )


def test_markup_that_got_in_could_not_run_a_script(browser: webdriver.Chrome, address: str) -> None:
    """The policy is the second wall: even markup put into the page by force runs nothing."""
    browser.get(f"{address}/")
    browser.execute_script(
        "document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.ran = 1\">');"
        "const script = document.createElement('script'); script.textContent = 'window.ran = 2';"
        "document.body.append(script);"
    )
    browser.execute_async_script("setTimeout(arguments[0], 500)")
    assert browser.execute_script("return window.ran") is None


def test_the_page_reports_no_error_of_its_own(browser: webdriver.Chrome, address: str) -> None:
    browser.get(f"{address}/")
    browser.get_log("browser")  # type: ignore[no-untyped-call]  # empties it
    browser.get(f"{address}/?q=lighthouse&open=https://site1.example/page/1")
    wait(browser, "!document.getElementById('reader').hidden")
    rows = browser.get_log("browser")  # type: ignore[no-untyped-call]
    assert [row for row in rows if row["level"] in {"SEVERE", "WARNING"}] == []


def test_a_key_is_asked_for_when_the_server_wants_one(
    browser: webdriver.Chrome, tmp_path: Path
) -> None:
    with stub_process(delay=0.0, keys="open-sesame") as server:
        browser.get(f"http://127.0.0.1:{server.port}/?q=lighthouse")
        wait(browser, "!document.getElementById('key-row').hidden")
        at(browser, "key").send_keys("open-sesame", Keys.TAB)
        wait(browser, "document.querySelectorAll('.hit').length === 10")
        wait(browser, "document.getElementById('key-row').hidden")
        assert "open-sesame" not in browser.current_url
