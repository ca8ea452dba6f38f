"""The live page in Chromium: what it shows of a loaded server, with how many targets, by keyboard, on a phone."""

import os
import subprocess
import time

import pytest

from support.browser import Browser
from support.cgroup import Cgroup
from support.clients import ExactLoad
from support.servers import ExactServer
from support.slow import slow_but
from support.tacho import Tacho, target
from support.waiting import wait_until

# The load of the fixture goes on until after the test.
pytestmark = pytest.mark.leaves_open

RATE = 1000  # requests a second of the load

FIRST_ROW = "document.querySelector('#table tbody tr')"
ROWS = "document.querySelectorAll('#table tbody tr').length"
LIVE = "document.body.dataset.state === 'live'"
NUMBER = "parseFloat(args.text.replaceAll('\\u202f', ''))"


@pytest.fixture(scope="module")
def browser():
    try:
        started = Browser()
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        pytest.skip(f"Playwright cannot be had: {error}")
    with started as chromium:
        yield chromium


@pytest.fixture
def loaded(cgroups):
    """A server that takes 5 ms, with RATE requests a second; its cgroup."""
    group = cgroups("page")
    with ExactServer(group.prefix, mode="threads", reply_delay_us=5000) as server:
        with ExactLoad(server.address, connections=16, rate=RATE):
            yield group


def shown_number(browser, column: int) -> float:
    text = browser.evaluate(f"{FIRST_ROW}.children[{column}].textContent")
    return float(text.replace("\u202f", "").split("\u00a0")[0])


def names(browser) -> list[str]:
    return browser.evaluate("[...document.querySelectorAll('#table tbody tr')].map((row) => row.querySelector('a').textContent)")


def test_a_loaded_server_shows_what_it_does(browser, loaded):
    with Tacho({"targets": [target("shop", loaded.path, labels={"team": "edge"})]}) as tacho:
        browser.open(tacho.address)
        browser.wait(f"{LIVE} && {ROWS} === 1")
        browser.wait("document.querySelector('.sparkline path')?.getAttribute('d').split('L').length > 12", timeout=40)
        assert shown_number(browser, 1) == pytest.approx(RATE, rel=0.25)
        p50, p99 = (browser.evaluate(f"{FIRST_ROW}.children[{column}].textContent") for column in (3, 4))
        assert p50.endswith("ms") and 4 <= float(p50.split("\u00a0")[0]) < 9, p50  # the bucket of 5 ms
        assert p99.endswith(("ms", "s")), p99
        assert browser.evaluate(f"{FIRST_ROW}.querySelector('small').textContent") == "team=edge"
        links = browser.evaluate("[...document.querySelectorAll('nav a')].map((link) => link.getAttribute('href'))")
        assert links == ["./metrics", "./targets"]
        browser.screenshot("loaded")

        browser.run("await page.click('#table tbody a')")
        browser.wait("document.querySelector('#detail-title')?.textContent === 'shop'")
        assert browser.evaluate("document.activeElement.id") == "detail-title"
        charts = browser.evaluate("[...document.querySelectorAll('.chart path')].map((path) => path.getAttribute('d').length)")
        assert len(charts) == 5 and min(charts[:4]) > 20, charts
        painted = browser.evaluate(
            "(({ canvas }) => canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.some(Boolean))"
            "({ canvas: document.querySelector('canvas') })")
        assert painted
        assert browser.evaluate("document.querySelector('.slow').hidden"), "without anatomy nothing is recorded"
        text = browser.evaluate("document.getElementById('detail').innerText")
        for word in ("socket.send", "tp_btf", "Interval variance", "CV²", "Threads waiting", "Lost events", loaded.path):
            assert word in text, word
        points = browser.evaluate("document.querySelector('.chart path').getAttribute('d').split('L').length")
        browser.wait("document.querySelector('.chart path')?.getAttribute('d').split('L').length > args.points + 1", points=points)
        browser.screenshot("detail")
        browser.run("await page.keyboard.press('Escape')")
        browser.wait("!document.getElementById('overview').hidden")
        assert browser.trouble() == []


def test_the_slowest_requests_are_drawn_with_what_they_waited_for(browser, loaded):
    rows = "[...document.querySelectorAll('.slow tbody tr')]"
    with Tacho({"targets": [target("shop", loaded.path)], "probes": {"anatomy": {"enabled": True}}}) as tacho:
        browser.open(tacho.address)
        browser.wait(f"{LIVE} && {ROWS} === 1")
        browser.run("await page.click('#table tbody a')")
        browser.wait(f"{rows}.length === 16", timeout=30)
        # The server sleeps for 5 ms; the machine makes some wait longer for something else.
        said = browser.evaluate(f"{rows}.map((row) => row.querySelector('.parts').getAttribute('aria-label'))")
        assert all("sleep" in label and "%" in label for label in said), said
        gaps = browser.evaluate(f"""{rows}.map((row) => row.querySelector('.parts')).map((bar) => bar.getBoundingClientRect().width
            - [...bar.children].reduce((sum, part) => sum + part.getBoundingClientRect().width, 0))""")
        assert max(map(abs, gaps)) < 1, gaps
        colours = browser.evaluate("new Set([...document.querySelectorAll('.part-key .part')]"
                                   ".map((part) => getComputedStyle(part).backgroundColor)).size")
        assert colours == 11
        browser.screenshot("slow")
        assert browser.trouble() == []


def test_calls_to_others_are_shown(browser, cgroups):
    behind, front = cgroups("behind"), cgroups("front")
    with ExactServer(behind.prefix) as server, ExactServer(front.prefix) as caller:
        # A client in the cgroup of a server: the server's calls.
        with ExactLoad(server.address, prefix=front.prefix, connections=2, rate=RATE):
            with Tacho({"targets": [target("front", front.path)]}) as tacho:
                assert caller.process.running
                browser.open(tacho.address)
                browser.wait(f"{ROWS} === 1 && {FIRST_ROW}.querySelector('.calls')?.textContent === args.peer", peer=server.address)
                browser.run("await page.click('#table tbody a')")
                browser.wait("document.getElementById('detail').innerText.includes(args.peer)", peer=server.address)
                assert browser.trouble() == []


def test_without_targets_it_says_so(browser):
    with Tacho({"targets": [target("later", "/tacho-no-such-cgroup")]}) as tacho:
        browser.open(tacho.address)
        browser.wait(f"{LIVE} && !document.getElementById('empty').hidden")
        assert "No server is watched yet" in browser.evaluate("document.getElementById('empty').textContent")
        assert "later" in browser.evaluate("document.getElementById('notices').textContent")
        assert browser.evaluate("document.getElementById('table').hidden")
        browser.screenshot("no-targets")
        assert browser.trouble() == []


@pytest.fixture
def thirty(cgroups):
    parent = cgroups("thirty")
    for number in range(30):
        Cgroup(f"c{number:02}", parent)
    config = {"targets": [target(f"t{number:02}", f"{parent.path}/c{number:02}") for number in range(30)]}
    with Tacho(config) as tacho:
        yield tacho


def test_thirty_targets_are_sorted_and_filtered_by_keyboard(browser, thirty):
    browser.open(thirty.address)
    browser.wait(f"{ROWS} === 30")
    assert names(browser) == [f"t{number:02}" for number in range(30)]  # no rates: in the order of the names
    header = "document.querySelectorAll('#table thead th')[0]"
    browser.run("for (let i = 0; i < 9; i += 1) { if (await page.evaluate('document.activeElement.textContent') === 'Target')"
                " break; await page.keyboard.press('Tab'); }")
    browser.run("await page.keyboard.press('Enter')")
    browser.wait(f"{header}.getAttribute('aria-sort') === 'ascending'")
    browser.run("await page.keyboard.press('Enter')")
    browser.wait(f"{header}.getAttribute('aria-sort') === 'descending' && {FIRST_ROW}.innerText.startsWith('t29')")
    assert browser.evaluate("document.querySelectorAll('th[aria-sort]').length") == 1

    # The focus stays in its row while the page goes on.
    browser.run("await page.focus('#table tbody tr:nth-child(3) a')")
    browser.run("await Promise.all([page.waitForResponse(/api/), page.waitForTimeout(1500)])")
    assert browser.evaluate("document.activeElement.textContent") == "t27"

    browser.run("await page.keyboard.press('/')")
    browser.run("await page.keyboard.type('C1')")
    browser.wait(f"{ROWS} === 10")
    assert "10 of 30" in browser.evaluate("document.getElementById('totals').textContent")
    assert names(browser)[0] == "t19"
    address = browser.evaluate("location.hash")
    assert "filter=C1" in address and "sort=name" in address
    browser.open(thirty.address, path=f"/{address}")
    browser.wait(f"{ROWS} === 10 && document.getElementById('filter').value === 'C1'")
    browser.run("await page.fill('#filter', 'nothing like it')")
    browser.wait("document.getElementById('empty').textContent.includes('No target matches')")
    assert browser.trouble() == []


def test_screen_readers_hear_a_table(browser, thirty):
    browser.open(thirty.address)
    browser.wait(f"{ROWS} === 30")
    heard = browser.run("return await page.locator('body').ariaSnapshot()")
    for words in ('table "Targets"', 'columnheader "Target"', 'rowheader "t00"', 'button "Requests/s"', 'searchbox "Filter"',
                  "- status: Live", "- banner:", "- main:", 'navigation "Data of this tacho"', 'link "Skip to the content"'):
        assert words in heard, f"{words} in\n{heard[:3000]}"
    for width in (1280, 360):  # cards are a table all the same
        browser.run("await page.setViewportSize({ width: args.width, height: 700 })", width=width)
        assert 'cell "' in browser.run("return await page.locator('#table tbody tr').first().ariaSnapshot()")


def test_a_paused_page_asks_nothing(browser, thirty):
    browser.open(thirty.address)
    browser.wait(f"{ROWS} === 30")
    browser.run("await page.click('#pause')")
    browser.wait("document.getElementById('status').textContent === 'Paused'")
    asked = browser.run("let count = 0; page.on('request', () => { count += 1; }); await page.waitForTimeout(2500); return count")
    assert asked == 0
    browser.run("await page.click('#pause')")
    browser.wait(LIVE)


CONTRAST = """(() => {
  const channels = (color) => color.match(/[\\d.]+/g).map(Number);
  const luminance = ([r, g, b]) => [r, g, b].map((value) => value / 255)
    .map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4))
    .reduce((sum, value, index) => sum + value * [0.2126, 0.7152, 0.0722][index], 0);
  const behind = (element) => {
    for (let each = element; each; each = each.parentElement) {
      const color = channels(getComputedStyle(each).backgroundColor);
      if (color.length === 3 || color[3] === 1) return color;
    }
    return [255, 255, 255];
  };
  return [...document.querySelectorAll('body *')]
    .filter((element) => element.checkVisibility() && [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim()))
    .map((element) => {
      const [a, b] = [luminance(channels(getComputedStyle(element).color)), luminance(behind(element))];
      return { text: element.textContent.slice(0, 40), ratio: (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05) };
    })
    .filter(({ ratio }) => ratio < 4.5);
})()"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out(browser, thirty, scheme):
    """WCAG 2.2, 1.4.3: at least 4.5 to 1."""
    browser.open(thirty.address, colorScheme=scheme, reducedMotion="reduce")
    browser.wait(f"{ROWS} === 30")
    back = browser.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (back == "rgb(255, 255, 255)") == (scheme == "light")
    assert browser.evaluate(CONTRAST) == []
    browser.run("await page.click('#table tbody a')")
    browser.wait("document.querySelector('#detail-title')?.textContent === 't00'")
    assert browser.evaluate(CONTRAST) == []
    assert browser.evaluate("getComputedStyle(document.querySelector('main')).transitionDuration") in ("0s", "")


@pytest.mark.parametrize("width", [320, 390])
def test_narrow_screens_need_no_scrolling_sideways(browser, cgroups, loaded, width):
    long = cgroups("x" * 120)
    with Tacho({"targets": [target("shop", loaded.path), target("a-" + "very-long-" * 12 + "name", long.path)]}) as tacho:
        browser.open(tacho.address, width=width, height=700, colorScheme="dark", hasTouch=True, isMobile=True)
        browser.wait(f"{LIVE} && {ROWS} === 2 && document.querySelector('.sparkline path')?.getAttribute('d')?.length > 20")
        overflow = "document.scrollingElement.scrollWidth - document.documentElement.clientWidth"
        assert browser.evaluate(overflow) <= 0
        small = browser.evaluate("[...document.querySelectorAll('button')].filter((button) => button.checkVisibility())"
                                 ".map((button) => button.getBoundingClientRect()).filter(({ height }) => height < 24).length")
        assert small == 0  # WCAG 2.2, 2.5.8
        browser.screenshot(f"narrow-{width}")
        browser.run("await page.tap('#table thead button >> text=Target')")
        browser.wait("document.querySelector('th[aria-sort]')?.textContent === 'Target'")
        browser.run("await page.tap('#table tbody a')")
        browser.wait("!document.getElementById('detail').hidden && document.querySelector('dd')?.textContent !== ''")
        assert browser.evaluate(overflow) <= 0
        assert browser.trouble() == []


HOSTILE = [
    "<img src=x onerror=alert(1)>",
    "\"><script>alert(2)<\\script>",
    "&lt;b&gt;&#60;",
    "'`${alert(3)}",
    "\u202eesrever\u2066",
    "javascript:alert(4)",
    "\x1b[31mred\x07",
    "%3Cscript%3E",
    "\udcff\udcfe",  # bytes that are no UTF-8
    "名前 😀",
    "a" * 200,
]


def test_hostile_names_are_text(browser, cgroups):
    parent = cgroups("hostile")
    for name in HOSTILE:
        (parent.directory / name).mkdir()
    with Tacho({"targets": [target("h", f"{parent.path}/*")]}) as tacho:
        browser.open(tacho.address)
        browser.run("page.on('dialog', (dialog) => { trouble.push(`dialog: ${dialog.message()}`); return dialog.dismiss(); })")
        browser.wait(f"{ROWS} === args.rows", rows=len(HOSTILE))
        text = browser.evaluate("document.getElementById('table').textContent")
        for name in HOSTILE:
            shown = os.fsencode(name).decode(errors="backslashreplace")
            assert shown in text, ascii(name)
        assert browser.evaluate("document.querySelectorAll('#table img, #table script, #table b').length") == 0
        # Each in detail too, by its own link.
        for number in range(len(HOSTILE)):
            browser.run("await page.click(`#table tbody tr:nth-child(${args.row}) a`)", row=number + 1)
            browser.wait("Boolean(document.querySelector('#detail dd')?.textContent)")
            browser.run("await page.keyboard.press('Escape')")
            browser.wait(f"{ROWS} === args.rows && !document.getElementById('overview').hidden", rows=len(HOSTILE))
        browser.run("await page.fill('#filter', args.text)", text="<IMG src")
        browser.wait(f"{ROWS} === 1")
        browser.screenshot("hostile")
        assert browser.trouble() == []
    for name in HOSTILE:
        os.rmdir(os.fsencode(str(parent.directory)) + b"/" + os.fsencode(name))


@pytest.mark.parametrize("view", ["table", "detail"])
def test_a_restart_of_tacho_is_survived(browser, loaded, view):
    config = {"targets": [target("shop", loaded.path)]}
    points = "(document.querySelector(args.path)?.getAttribute('d') ?? '').split('L').length"
    path = ".sparkline path" if view == "table" else ".chart path"
    with Tacho(config) as tacho:
        port = tacho.port
        browser.open(tacho.address)
        browser.wait(f"{ROWS} === 1")
        if view == "detail":
            browser.run("await page.click('#table tbody a')")
        browser.wait(f"{points} > 4", path=path)
    browser.wait("document.body.dataset.state === 'lost'")
    assert "No answer" in browser.evaluate("document.getElementById('status').textContent")
    browser.screenshot(f"restart-{view}")
    with Tacho(config, port=port):
        browser.wait(LIVE)
        before = browser.evaluate(points, path=path)
        browser.wait(f"{points} > args.before + 2", path=path, before=before)
        assert before <= 4, "the history of the former tacho is shown as the new one's"
        assert browser.trouble() == []


def test_a_target_that_goes_says_so(browser, cgroups):
    parent = cgroups("going")
    group = Cgroup("c0", parent)
    with Tacho({"targets": [target("g", f"{parent.path}/c*")]}) as tacho:
        browser.open(tacho.address)
        browser.wait(f"{ROWS} === 1")
        browser.run("await page.click('#table tbody a')")
        browser.wait(LIVE)
        group.remove()
        wait_until(lambda: tacho.scrape().get("tacho_targets") == 0, 5, "the target is gone")
        tacho.scrape()
        browser.wait("document.body.dataset.state === 'gone'", timeout=40)
        Cgroup("c0", parent)
        browser.wait(LIVE)


@pytest.mark.parametrize("targets, most", slow_but([(1000, 0.05)], [(30, 0.02), (1000, 0.05)], "fewer targets"))
def test_an_open_page_costs_next_to_nothing(browser, cgroups, targets, most):
    """CPU of tacho with the page open and without, as shares of a core."""
    parent = cgroups("many")
    groups = [Cgroup(f"c{number}", parent) for number in range(targets)]
    config = {"targets": [target("c", f"{parent.path}/c*")], "limits": {"max_targets": targets + 1}}
    with ExactServer(groups[0].prefix) as server, ExactLoad(server.address, connections=4, rate=RATE), Tacho(config) as tacho:
        wait_until(lambda: tacho.scrape().get("tacho_targets") == targets, 30, "all targets")

        def share(seconds: float) -> float:
            began, used = time.monotonic(), tacho.cpu_seconds()
            time.sleep(seconds)  # the measured time
            return (tacho.cpu_seconds() - used) / (time.monotonic() - began)

        closed = share(5)
        browser.open(tacho.address)
        browser.wait(f"{ROWS} === args.rows", rows=min(targets, 50))
        browser.wait("document.querySelector('.sparkline path')?.getAttribute('d')?.length > 20")
        sizes = "const sizes = []; page.on('response', async (answer) => sizes.push((await answer.request().sizes()).responseBodySize));"
        browser.run(f"{sizes} page.tachoSizes = sizes")
        opened = share(10)
        for _ in range(2):  # what the machine did meanwhile is no cost of the page
            if opened - closed >= most:
                opened = share(10)
        received = browser.run("return page.tachoSizes")
        print(f"{targets} targets: {100 * closed:.2f} % of a core closed, {100 * opened:.2f} % open, "
              f"{len(received)} answers of {max(received)} bytes at most")
        assert len(received) >= 5
        assert opened - closed < most
        if targets > 50:
            assert "950 are hidden" in browser.evaluate("document.getElementById('more').textContent")
            browser.run("await page.click('#more')")
            browser.wait(f"{ROWS} === 250")
        browser.screenshot(f"targets-{targets}")
        assert browser.trouble() == []


def test_it_may_do_nothing_but_what_it_needs():
    with Tacho({"targets": []}) as tacho:
        for path in ("/", "/assets/page.js"):
            status, headers, _ = tacho.http(path)
            policy = headers["Content-Security-Policy"]
            assert status == 200 and "default-src 'none'" in policy and "unsafe" not in policy
            again = tacho.http(path, headers={"If-None-Match": headers["ETag"]})
            assert again[0] == 304 and again[2] == b""
        assert tacho.http("/assets/../page.js")[0] == 404
        assert tacho.http("/api/v1/targets?sort=size")[0] == 400
        assert tacho.http("/api/v1/target?id=0000000000000000")[0] == 404
