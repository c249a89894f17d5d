"""The dashboard as a reader meets it: a real server, started as `weigh dashboard` starts it, in a real browser."""

from __future__ import annotations

import http.client
import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic, sleep
from typing import Any
from urllib.parse import parse_qs, urlparse

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.slow

ARGUMENTS = (
    "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--no-first-run",
)  # fmt: skip
Visit = Callable[..., Any]


@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium, args=list(ARGUMENTS))
        yield started
        started.close()


@pytest.fixture(scope="module")
def contexts(browser: Any) -> dict[str, Any]:
    """One window for each colour scheme; the server's own scripts are fetched once into each."""
    return {
        scheme: browser.new_context(viewport={"width": 1440, "height": 900}, color_scheme=scheme)
        for scheme in ("light", "dark")
    }


@pytest.fixture
def visit(contexts: dict[str, Any], serve: Callable[[str], str]) -> Iterator[Visit]:
    """Open a page of a store's dashboard and wait until it is drawn.

    At the end of the test no page may have shown an error, run foreign script, or asked another machine for anything.
    """
    alien: list[str] = []
    dialogs: list[str] = []

    def open_page(store: str, path: str = "", scheme: str = "light") -> Any:
        page = contexts[scheme].new_page()
        page.set_default_timeout(60_000)
        page.on("request", lambda request: None if _own(request.url) else alien.append(request.url))
        page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
        page.goto(f"{serve(store)}/{path}")
        wait(page)
        return page

    yield open_page
    for context in contexts.values():
        for page in context.pages:
            assert page.locator("[data-testid=stException]").count() == 0
            assert page.locator("[data-testid=stAlertContentError]").count() == 0
            assert "Traceback" not in page.content()
            page.close()
    assert alien == []
    assert dialogs == []


def _own(url: str) -> bool:
    return url.startswith(("http://127.0.0.1:", "ws://127.0.0.1:", "data:", "blob:"))


def wait(page: Any) -> None:
    """Wait until the page's script has run to its end: the footer is there and nothing is running."""
    page.get_by_text("Data as of").wait_for()
    page.wait_for_function("!document.querySelector('[data-testid=stStatusWidget]')")
    page.wait_for_function("!document.querySelector('[data-stale=true]')")


def query(page: Any) -> dict[str, list[str]]:
    return parse_qs(urlparse(page.url).query)


def pick(page: Any, label: str, option: str) -> None:
    """Choose an option of a select box or multiselect as a reader does."""
    page.get_by_label(label, exact=True).first.click()
    page.get_by_role("option", name=re.compile(re.escape(option))).first.click()
    page.keyboard.press("Escape")


def test_a_chosen_filter_stands_in_the_address_and_the_address_gives_the_filter(
    visit: Visit, many_run_store: Any
) -> None:
    page = visit(many_run_store.url)
    pick(page, "Hardware", "NVIDIA T4")
    page.wait_for_url("**/?hardware=NVIDIA+T4")
    wait(page)
    again = visit(many_run_store.url, page.url.split("/", 3)[3])
    expect(again.get_by_test_id("stMetricValue").first).to_have_text("2")
    assert (
        again.locator("[data-baseweb=tag]").all_inner_texts() == ["NVIDIA T4"] or again.get_by_text("NVIDIA T4").count()
    )


def test_a_search_stands_in_the_address(visit: Visit, many_run_store: Any) -> None:
    page = visit(many_run_store.url)
    page.get_by_role("textbox", name="Search").fill("openvino offline")
    page.keyboard.press("Enter")
    page.wait_for_url("**/?q=openvino+offline")
    wait(page)
    expect(page.get_by_test_id("stMetricValue").first).to_have_text("1")


def test_the_baseline_stands_in_the_address_by_its_id(visit: Visit, many_run_store: Any) -> None:
    page = visit(many_run_store.url, "compare?family=resnet50")
    pick(page, "Baseline", "NVIDIA T4")
    page.wait_for_function("location.search.includes('baseline=xe2420-t4x1-trt')")
    wait(page)
    assert query(page)["family"] == ["resnet50"]
    again = visit(many_run_store.url, page.url.split("/", 3)[3])
    assert (
        again.get_by_role("table")
        .first.locator("tbody tr")
        .first.inner_text()
        .startswith("NVIDIA T4, tensorrt gpu (baseline)")
    )


def test_the_link_that_is_offered_is_the_view(visit: Visit, many_run_store: Any) -> None:
    page = visit(many_run_store.url, "compare?family=resnet50")
    pick(page, "Beside it", "Raspberry Pi 4")
    page.wait_for_function("location.search.includes('system=rpi4')")
    wait(page)
    page.get_by_text("Link to this view").click()
    offered = page.get_by_test_id("stPopoverBody").get_by_test_id("stCode").inner_text().strip()
    named = parse_qs(urlparse(offered).query)
    assert named.pop("baseline")[0].startswith("bench-1-onnxruntime-cpu")  # the default of today, named for tomorrow
    assert named == query(page)
    assert urlparse(offered).path == "/compare"


def test_from_a_comparison_to_the_run_of_a_number(visit: Visit, many_run_store: Any) -> None:
    page = visit(many_run_store.url, "compare?family=resnet50")
    page.get_by_text("What differs from the baseline").first.click()
    with page.context.expect_page() as opened:
        page.get_by_role("link", name="its run").nth(1).click()
    run = opened.value
    wait(run)
    assert query(run)["run"] == [many_run_store.runs["A100-PCIe-80GBx1_TRT"]]
    expect(run.get_by_text("MLPerf Inference v3.0, closed, NVIDIA").first).to_be_visible()


def test_from_a_row_of_the_results_to_its_run(visit: Visit, many_run_store: Any) -> None:
    page = visit(many_run_store.url, "?hardware=NVIDIA+T4&scenario=offline")
    place = page.get_by_test_id("stDataFrame").locator("canvas").first.bounding_box()
    x, y = place["x"] + 16, place["y"] + 50  # "open" in the first row; the table is one picture
    page.mouse.move(x, y)
    page.wait_for_timeout(500)
    with page.context.expect_page() as opened:
        page.mouse.click(x, y)
    wait(opened.value)
    wanted = many_run_store.measurements["XE2420_T4x1_TRT mlperf-resnet50 tensorrt gpu offline"]
    assert query(opened.value)["measurement"] == [wanted]


def test_back_and_forward_go_through_the_views(visit: Visit, many_run_store: Any) -> None:
    page = visit(many_run_store.url, "compare")
    family = page.get_by_label("Workload family", exact=True).first
    pick(page, "Workload family", "efficientnet-lite0")
    page.wait_for_url("**/compare?family=efficientnet-lite0")
    page.get_by_text("Only one system has been measured").wait_for()
    page.go_back()
    expect(family).to_have_value("resnet50")
    page.go_forward()
    expect(family).to_have_value("efficientnet-lite0")
    page.get_by_text("Only one system has been measured").wait_for()


def test_another_measurement_of_a_run_stands_in_the_address(visit: Visit, one_run_store: Any) -> None:
    page = visit(one_run_store.url, f"run?run={one_run_store.runs['bench-1']}")
    pick(page, "Measurement", "EfficientNet-Lite0")
    wanted = one_run_store.measurements["bench-1 efficientnet-lite0 onnxruntime cpu single_stream"]
    page.wait_for_function(f"location.search.includes('{wanted}')")
    wait(page)
    expect(page.get_by_role("heading", name="EfficientNet-Lite0 on Acme CPU 9000")).to_be_visible()


def test_the_pages_are_reached_from_each_other(visit: Visit, many_run_store: Any) -> None:
    page = visit(many_run_store.url)
    for name in ("Compare", "Run", "Results"):
        page.get_by_role("link", name=name, exact=True).click()
        page.get_by_role("heading", name=name, exact=True, level=1).wait_for()
        wait(page)


def test_the_page_goes_on_with_new_data(visit: Visit, tmp_path: Path, one_run_store: Any) -> None:
    """What is ingested while a page is open is there after the next click: the cache knows the store's version."""
    import shutil

    copy = tmp_path / "copy.sqlite"
    shutil.copy(one_run_store.url.removeprefix("sqlite:///"), copy)
    page = visit(f"sqlite:///{copy}", f"run?run={one_run_store.runs['bench-1']}")
    assert page.get_by_text("marked as bad").count() == 0
    from db.annotations import annotate
    from db.store import open_store

    store = open_store(f"sqlite:///{copy}")
    annotate(store.engine, one_run_store.runs["bench-1"], "The fan was unplugged.", "ana", bad=True)
    store.close()
    page.reload()
    page.get_by_text("This run is marked as bad: The fan was unplugged.").wait_for()
    wait(page)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("state", ["empty_store", "one_run_store", "many_run_store", "rich_store"])
def test_each_state_is_drawn_in_both_themes(
    visit: Visit, request: pytest.FixtureRequest, tmp_path: Path, state: str, scheme: str
) -> None:
    import tomllib

    theme = tomllib.loads((Path(__file__).parents[3] / "dashboard" / "theme.toml").read_text())["theme"][scheme]
    store = request.getfixturevalue(state)
    for path in ("", "compare", "run"):
        page = visit(store.url, path, scheme)
        colour = page.evaluate("getComputedStyle(document.querySelector('[data-testid=stApp]')).backgroundColor")
        assert colour == "rgb({}, {}, {})".format(*bytes.fromhex(theme["backgroundColor"][1:]))
        overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert page.evaluate(overflow) <= 0
        page.screenshot(path=tmp_path / f"{state}-{path or 'results'}-{scheme}.png", full_page=True)
        if state in ("many_run_store", "rich_store") and path != "run":
            page.locator("[data-testid=stVegaLiteChart] canvas, [data-testid=stVegaLiteChart] svg").first.wait_for()


SCENARIO_PICTURES = {"server": 3, "sustained": 5, "cold_start": 1, "offline": 2, "duty_cycle": 2}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_scenario_has_its_pictures(visit: Visit, rich_store: Any, tmp_path: Path, scheme: str) -> None:
    """Each chart is really drawn, not only described: distribution, stages, and what the scenario is about."""
    for scenario, pictures in SCENARIO_PICTURES.items():
        wanted = rich_store.measurements[f"lab-a efficientnet-lite0 onnxruntime cpu {scenario}"]
        page = visit(rich_store.url, f"run?run={rich_store.runs['lab-a']}&measurement={wanted}", scheme)
        charts = page.locator("[data-testid=stVegaLiteChart] canvas, [data-testid=stVegaLiteChart] svg")
        expect(charts).to_have_count(pictures)
        for chart in charts.all():
            box = chart.bounding_box()
            assert box is not None and box["width"] > 200 and box["height"] > 60
        page.screenshot(path=tmp_path / f"{scenario}-{scheme}.png", full_page=True)


def test_a_limit_is_typed_and_stands_in_the_address(visit: Visit, rich_store: Any) -> None:
    wanted = rich_store.measurements["lab-a efficientnet-lite0 onnxruntime cpu server"]
    page = visit(rich_store.url, f"run?run={rich_store.runs['lab-a']}&measurement={wanted}")
    card = page.get_by_test_id("stMetric").filter(has_text="Highest rate")
    expect(card.get_by_test_id("stMetricValue")).to_have_text("50.0")
    page.get_by_role("textbox", name="Limit on latency (ms)").fill("25")
    page.keyboard.press("Enter")
    page.wait_for_function("location.search.includes('limit=25')")
    wait(page)
    expect(card.get_by_test_id("stMetricValue")).to_have_text("70.0")


def test_a_verdict_tells_its_reasons_on_hover(visit: Visit, rich_store: Any) -> None:
    page = visit(rich_store.url, "compare")
    page.get_by_text("Verdicts against the baseline").first.click()
    page.get_by_text("p50: not comparable").first.hover()
    page.get_by_role("tooltip").get_by_text("failed the accuracy gate").wait_for()


def test_a_hostile_name_runs_nothing(visit: Visit, many_run_store: Any) -> None:
    name = "<script>alert(1)</script>**[x](javascript:alert(1))**"
    for path in (f"?device={name}", "compare?family=resnet50", f"run?run={many_run_store.runs[name]}"):
        page = visit(many_run_store.url, path)
        assert page.locator("a[href^='javascript']").count() == 0
        assert page.evaluate("[...document.scripts].some(s => s.textContent.includes('alert(1)'))") is False


def test_an_unknown_run_is_a_sentence(browser: Any, serve: Callable[[str], str], one_run_store: Any) -> None:
    page = browser.new_page()
    page.goto(f"{serve(one_run_store.url)}/run?run=none")
    page.get_by_text("The store holds no run none.").wait_for(timeout=60_000)
    assert "Traceback" not in page.content()
    page.close()


def test_a_page_of_another_host_cannot_talk_to_the_server(serve: Callable[[str], str], empty_store: Any) -> None:
    """DNS rebinding: a name that somebody points to 127.0.0.1 is refused, and so is a foreign origin."""
    address = urlparse(serve(empty_store.url))

    def status(**headers: str) -> int:
        connection = http.client.HTTPConnection("127.0.0.1", address.port or 0, timeout=20)
        key = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13",
               "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}  # fmt: skip
        connection.request("GET", "/_stcore/stream", headers={**key, **headers})
        code = connection.getresponse().status
        connection.close()
        return code

    assert status(Host=f"127.0.0.1:{address.port}", Origin=f"http://127.0.0.1:{address.port}") == 101
    assert status(Host=f"evil.example:{address.port}", Origin=f"http://evil.example:{address.port}") == 403
    assert status(Host=f"127.0.0.1:{address.port}", Origin="http://evil.example") == 403


@pytest.mark.parametrize("way", ["Ctrl-C", "SIGTERM"])
def test_the_command_starts_says_where_and_stops(way: str, one_run_store: Any, free_port: int, tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "weigh",
        "dashboard",
        "--port",
        str(free_port),
        "--no-browser",
        "--store",
        one_run_store.url,
    ]
    # A shell's background job ignores Ctrl-C, and must still end when it is told to.
    background = [] if way == "Ctrl-C" else ["sh", "-c", 'trap "" INT; exec "$@"', "sh"]
    process = subprocess.Popen(
        background + command, cwd=tmp_path, env={**os.environ, "PYTHONUNBUFFERED": "1"}, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, start_new_session=True,
    )  # fmt: skip
    try:
        end = monotonic() + 60
        while monotonic() < end:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{free_port}/_stcore/health", timeout=2) as answer:
                    assert answer.read() == b"ok"
                    break
            except OSError:
                sleep(0.2)
        refused = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert refused.returncode == 2
        assert f"Port {free_port} of 127.0.0.1 is already in use." in refused.stderr
        sleep(0.5)
        if way == "Ctrl-C":
            os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the command and to its server
        else:
            process.send_signal(signal.SIGTERM)  # as a service manager may do: to the command only
        output, _ = process.communicate(timeout=20)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    assert process.returncode == 0
    assert f"The dashboard is at http://127.0.0.1:{free_port} (Ctrl-C stops it)." in output
    assert "Traceback" not in output
    with pytest.raises(OSError):
        urllib.request.urlopen(f"http://127.0.0.1:{free_port}/_stcore/health", timeout=2)
