"""The page in a browser: no error, no request, and everything can be reached.

Needs playwright and a Chromium, whose path LONGPOLE_CHROMIUM may give.
"""

from __future__ import annotations

import os
import shutil

import pytest

from longpole.cli import program
from longpole.testing import TraceBuilder

pytestmark = pytest.mark.needs("playwright")

CHROMIUM = os.environ.get("LONGPOLE_CHROMIUM") or shutil.which("chromium")
HOSTILE = "<img src=x onerror=document.title='owned'><script>document.title='owned'</script>"


@pytest.fixture(scope="module")
def browser():
    from playwright import sync_api as api

    if CHROMIUM is None:
        pytest.skip("there is no chromium")
    with api.sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    builder = TraceBuilder()
    for step in range(4):
        begin = 1_000 * step
        builder.step(step, (begin, begin + 950))
        builder.python("data.py(7): load", (begin, begin + 200))
        builder.operator(f"aten::{HOSTILE}", (begin + 200, begin + 240))
        builder.launch(HOSTILE, call=(begin + 205, begin + 210), work=(begin + 215, begin + 900))
        builder.call("cudaDeviceSynchronize", (begin + 240, begin + 905))
    trace = builder.write(folder / "trace.json")
    assert program.run(["report", str(trace), "-o", str(folder / "report.html")]) == 0
    return folder / "report.html"


@pytest.fixture(params=[(1400, "light"), (1400, "dark"), (400, "light"), (400, "dark")], ids=str)
def page(browser, report, request):
    width, scheme = request.param
    context = browser.new_context(
        viewport={"width": width, "height": 800}, color_scheme=scheme, offline=True
    )
    found = context.new_page()
    found.problems, found.requests = [], []
    found.on("console", lambda message: found.problems.append(message.text))
    found.on("pageerror", lambda error: found.problems.append(str(error)))
    found.on("request", lambda request: found.requests.append(request.url))
    found.goto(report.as_uri())
    yield found
    context.close()


def test_the_page_asks_for_nothing_and_fits(page):
    assert [url for url in page.requests if not url.startswith("file:")] == []
    assert len(page.requests) == 1
    assert page.problems == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.title() == "longpole: trace.json"
    assert page.locator("main img, main script:not([type='application/json'])").count() == 0


def test_every_section_can_be_opened_and_read(page):
    for link in page.locator("nav a").all():
        link.click()
        key = link.get_attribute("href").removeprefix("#")
        assert page.locator(f"#{key}").is_visible()
        folded = page.locator(f"#{key} > details")
        assert folded.count() == 0 or folded.get_attribute("open") is not None
    assert page.problems == []


def test_the_path_is_walked_by_mouse_and_by_keyboard(page):
    shown = page.locator("#timeline .told")
    page.get_by_role("button", name="Next segment").click()
    first = shown.text_content()
    page.locator("#timeline canvas").focus()
    for key in ("n", "+", "ArrowRight", "-", "ArrowLeft", "0"):
        page.keyboard.press(key)
    assert shown.text_content() != first
    page.keyboard.press("p")
    assert shown.text_content() == first
    assert page.problems == []


def test_a_link_to_an_event_shows_it_in_the_timeline_or_in_the_list_of_events(page):
    shown = page.locator("#timeline .told")
    link = page.locator("#verdict a, #path a").first
    number = link.get_attribute("href").removeprefix("#event-")
    link.click()
    assert shown.text_content().endswith(f"event {number}")
    box = page.locator("#timeline canvas").bounding_box()
    assert -box["height"] < box["y"] < 800
    assert "launched by aten::<img" in shown.text_content() or "stream" not in shown.text_content()
    page.evaluate("() => { location.hash = '#events'; }")
    page.locator("#events > details[open]").wait_for()
    assert page.locator(f"#event-{number}").is_visible()
    assert page.problems == []


def test_the_first_screen_has_figures_bars_and_gains(page):
    assert page.locator(".tiles li").count() >= 3
    for bar in page.locator(".whole").all():
        widths = bar.evaluate("(bar) => [...bar.children].map((part) => part.offsetWidth)")
        assert sum(widths) == pytest.approx(bar.evaluate("(bar) => bar.clientWidth"), abs=8)
    seen = page.locator(".tiles strong").first
    assert seen.bounding_box()["y"] < 800


def test_a_name_is_shown_on_hover_as_text(page):
    canvas = page.locator("#timeline canvas")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    # The first row below the axis and the path is the stream.
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 26 + 18 + 9)
    assert "<img src=x" in page.locator("#timeline .tip").text_content()
    assert page.title() == "longpole: trace.json"


def test_the_search_shows_rows_of_all_tables_and_opens_their_place(said, page):
    page.locator("#search input").fill("img onerror")
    found = page.locator("#found")
    assert "<img src=x" in found.text_content()
    assert page.title() == "longpole: trace.json"
    assert found.evaluate("(panel) => panel.scrollWidth <= panel.clientWidth")
    link = found.get_by_role("link", name="Tables \u203a kernels", exact=True)
    link.click()
    assert not found.is_visible()
    assert page.locator("#question-kernels table").is_visible()
    page.locator("#search input").fill("nothing has this name")
    said.within(found.text_content())
    assert page.problems == []


def test_a_click_on_a_frame_of_a_flame_graph_zooms_to_it(page):
    canvas = page.locator("#flame-path canvas")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    canvas.click(position={"x": box["width"] / 2, "y": 26 + 9})
    assert "ProfilerStep" in page.locator("#flame-path .told").text_content()
    assert page.problems == []


def test_nothing_is_cut_off_on_a_narrow_screen(page):
    page.locator("#unfold").click()
    width = page.evaluate("innerWidth")
    cut = page.evaluate(
        """[...document.querySelectorAll("main td, main button, nav a, summary, h2, h3")]
        .filter((part) => part.getBoundingClientRect().right > innerWidth)
        .map((part) => part.textContent)"""
    )
    if width < 640:
        assert cut == []
        row = page.locator("#question-kernels tbody tr").first
        assert row.evaluate("(row) => getComputedStyle(row).display") == "flex"
        title = "(cell) => getComputedStyle(cell, '::before').content"
        rows = [cell.evaluate(title) for cell in row.locator("td").all()]
        assert "none" in rows  # a name needs no title
        assert len([text for text in rows if text != "none"]) > 3


def test_all_is_unfolded_and_folded_by_one_button(page):
    button = page.locator("#unfold")
    button.click()
    assert page.locator("details:not([open])").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    button.click()
    assert page.locator("details[open]").count() == 0


def test_without_javascript_everything_is_there_but_the_pictures(browser, report):
    context = browser.new_context(java_script_enabled=False, offline=True)
    found = context.new_page()
    found.goto(report.as_uri())
    assert found.locator("noscript p").is_visible()
    assert not found.locator("#search").is_visible()
    found.locator("#question-steps summary").click()
    assert found.locator("#question-steps table").is_visible()
    context.close()
