"""What the other tests of this folder don't find would be found: a page with each fault."""

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from tests.support.browser import Browser

POLICY = "default-src 'none'; img-src http:"
FAULTY = """<!doctype html><html lang=en><title>Faulty</title><main><h1>Faulty</h1>
<img src="http://localhost:{port}/elsewhere.png">
<script>document.title = "not allowed"</script>
<p style="width: 2000px">wide
<button></button><noscript>without scripts</noscript></main>"""


class Faulty(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        page = FAULTY.format(port=self.server.server_port).encode()  # type: ignore[attr-defined]
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(page)))
        if self.path == "/strict":
            self.send_header("Content-Security-Policy", POLICY)
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def faulty() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Faulty) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_what_keeps_people_from_using_a_page_is_found(chromium: Browser, faulty: str) -> None:
    chromium.open(faulty, width=400)
    found = {line.partition(" ")[0] for line in chromium.audit()}
    assert {"image-alt", "button-name"} <= found
    assert chromium.overhang > 1000


def test_requests_elsewhere_and_what_the_policy_forbids_are_found(
    chromium: Browser, faulty: str
) -> None:
    chromium.open(f"{faulty}/strict")
    assert [url for url in chromium.requests() if not url.startswith(faulty)]
    assert [line for line in chromium.console() if "Content Security Policy" in line]
    assert chromium.driver.title == "Faulty"


def test_a_page_is_seen_as_it_is_without_scripts(chromium: Browser, faulty: str) -> None:
    chromium.open(faulty, scripts=False)
    assert chromium.driver.title == "Faulty"
    chromium.shows("without scripts")
    chromium.open(faulty)
    assert chromium.driver.title == "not allowed"
