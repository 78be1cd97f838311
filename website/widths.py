"""Measure in a headless Chromium whether the pages of the site fit a telephone (390 px) and a laptop (1280 px).

`make docs-site` calls it after it has built the site. A page has a fault in each of these cases:

- Its body scrolls sideways, at either width.
- A line of code or a table scrolls sideways at 1280 px.
- At 390 px, the second column of a table cannot be seen without scrolling, or is narrower than 100 px. In the
  reference this column says what the first one means.

One Chromium loads one page after the other into a frame, and sends back what it has measured. A machine without
Chromium measures nothing, and one line says so.
"""

import json
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
SECONDS = 300
"""The time after which Chromium has hung: all pages take it less than a minute."""
_HARNESS = """<!doctype html><meta charset="utf-8"><iframe style="height: 900px"></iframe><script>
const frame = document.querySelector("iframe"), pause = ms => new Promise(done => setTimeout(done, ms));
const said = element => element.textContent.trim().replace(/\\s+/g, " ").slice(0, 60);
async function measured(page) {
  frame.style.width = "1280px";
  await new Promise(done => { frame.onload = done; frame.src = page; });
  const faults = [], inside = frame.contentDocument, root = inside.documentElement;
  const tables = () => [...inside.querySelectorAll("article table:not(.highlighttable)")];
  for (let wait = 0; wait < 100 && tables().some(each => !each.closest(".md-typeset__scrollwrap")); wait++)
    await pause(20);  // the theme's script gives each table a container that scrolls
  const box = table => table.closest(".md-typeset__scrollwrap") || root;
  const edge = element => element.getBoundingClientRect().right;
  for (const width of [1280, 390]) {
    frame.style.width = width + "px";
    await pause(0);
    const fault = (what, by) => { if (by > 1) faults.push(`${width} px: ${what} is ${Math.ceil(by)} px too wide`); };
    const narrow = (table, by) => { if (by < 100) faults.push(`390 px: "${said(table)}" is read in ${by} px`); };
    fault("the page", root.scrollWidth - root.clientWidth);
    for (const table of tables()) {
      const cells = width == 390 ? table.querySelectorAll("tr > :nth-child(2)") : [table];
      fault(`the table "${said(table)}"`, Math.max(0, ...[...cells].map(edge)) - edge(box(table)));
      if (width == 390) narrow(table, Math.min(...[...cells].map(each => each.clientWidth)));
    }
    if (width == 1280)
      for (const code of inside.querySelectorAll("article pre code"))
        fault(`the code "${said(code)}"`, code.scrollWidth - code.clientWidth);
  }
  return faults;
}
(async () => {
  const pages = await (await fetch("/pages.json")).json(), found = {};
  for (const page of pages) found[page] = await measured(page);
  await fetch("/", {method: "POST", body: JSON.stringify(found)});
})();
</script>"""


class _Site(SimpleHTTPRequestHandler):
    """The site, and beside it the page that measures, the list of pages, and a place for what was measured."""

    def __init__(
        self, *args: Any, pages: Sequence[str], found: "queue.Queue[dict[str, list[str]]]", directory: str
    ) -> None:
        self._made = {"/measure.html": _HARNESS, "/pages.json": json.dumps(pages)}
        self._found = found
        super().__init__(*args, directory=directory)

    def do_GET(self) -> None:
        """Answer with a file of the site, or with what is made here."""
        made = self._made.get(self.path)
        if made is None:
            super().do_GET()
            return
        body = made.encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json" if self.path.endswith("json") else "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        """Take what was measured."""
        self._found.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing of a request."""


def measure(chromium: str, site: Path) -> dict[str, list[str]]:
    """Return the faults of each page, by its path in the site. Raises TimeoutError if Chromium does not answer."""
    pages = sorted(f"/{each.relative_to(site)}" for each in site.rglob("index.html"))
    found: queue.Queue[dict[str, list[str]]] = queue.Queue()
    handler = partial(_Site, pages=pages, found=found, directory=str(site))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server, tempfile.TemporaryDirectory() as profile:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []  # Chromium has none for root
        address = f"http://127.0.0.1:{server.server_address[1]}/measure.html"
        options = ["--headless", "--disable-gpu", "--window-size=1400,1000", "--remote-debugging-port=0"]
        browser = subprocess.Popen(
            [chromium, *options, *sandbox, f"--user-data-dir={profile}", address],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            return found.get(timeout=SECONDS)
        except queue.Empty:
            raise TimeoutError(f"{chromium} has measured nothing in {SECONDS} s") from None
        finally:
            browser.terminate()
            browser.wait()
            server.shutdown()


def lines(found: dict[str, list[str]]) -> Iterator[str]:
    """Yield one line for each fault."""
    for page, faults in found.items():
        for fault in faults:
            yield f"{page.removesuffix('index.html')}: {fault}"


def main() -> None:
    """Measure the site of the command line; exit with 1 if a page does not fit."""
    chromium = next(filter(None, map(shutil.which, NAMES)), None)
    if chromium is None:
        print("no Chromium here: the widths of the pages were not measured")  # noqa: T201
        return
    found = measure(chromium, Path(sys.argv[1]))
    if not found:
        sys.exit(f"there are no pages in {sys.argv[1]}")
    faults = list(lines(found))
    for line in faults:
        print(line)  # noqa: T201
    print(f"{len(found)} pages were measured at 390 and 1280 px, with {len(faults)} faults")  # noqa: T201
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
