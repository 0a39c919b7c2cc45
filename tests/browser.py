"""Headless Chromium, driven through its debugging pipe: nothing to install beside the browser."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import time

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)


# A shell would do, but dash knows no descriptors above 9.
START = """
import os, sys
ends = [os.dup(os.dup(os.dup(int(end)))) for end in sys.argv[1:3]]  # neither is 3 or 4 any more
os.dup2(ends[0], 3)
os.dup2(ends[1], 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


def find_chromium():
    """Where the browser is, or None."""
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    return next((path for path in map(shutil.which, names) if path), None)


class Browser:
    """One page of one browser.  `errors` holds what its console complained about.

    The pipe: the browser reads commands on descriptor 3 and answers on 4, JSON ended by a zero.
    """

    def __init__(self, folder):
        to_read, self._write = os.pipe()
        self._read, to_write = os.pipe()
        place = [sys.executable, "-c", START, str(to_read), str(to_write), find_chromium()]
        self._process = subprocess.Popen(
            [*place, *FLAGS, f"--user-data-dir={folder}", "about:blank"],
            pass_fds=(to_read, to_write),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_read)
        os.close(to_write)
        self._rest, self._last, self._session = b"", 0, None
        self._events = []
        self.errors, self.requests = [], []
        target = next(
            t["targetId"]
            for t in self.send("Target.getTargets")["targetInfos"]
            if t["type"] == "page"
        )
        attached = self.send("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def send(self, method, **parameters):
        """Send a command; return its result."""
        self._last += 1
        message = {"id": self._last, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._last:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def open(self, path, width=1280, height=900):
        """Load a file; return when all of it is there."""
        self.resize(width, height)
        self._events.clear()
        self.send("Page.navigate", url=path.as_uri())
        while "Page.loadEventFired" not in self._events:
            self._next()

    def resize(self, width, height=900):
        """Change the window."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.send("Emulation.setDeviceMetricsOverride", **size)

    def media(self, scheme="light", medium=""):
        """Prefer light or dark; medium may be "print"."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.send("Emulation.setEmulatedMedia", media=medium, features=features)

    def run(self, script):
        """The value of an expression."""
        result = self.send(
            "Runtime.evaluate",
            expression=script,
            returnByValue=True,
            awaitPromise=True,
            userGesture=True,
        )
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"])
        return result["result"].get("value")

    def click(self, selector):
        """Press the mouse in the middle of an element."""
        x, y = self.run(
            f"(() => {{ const e = document.querySelector({selector!r});"
            "e.scrollIntoView({block: 'center', inline: 'center', behavior: 'instant'});"
            "const b = e.getBoundingClientRect();"
            "return [b.x + b.width / 2, b.y + b.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            place = {"x": x, "y": y, "button": "left", "clickCount": 1}
            self.send("Input.dispatchMouseEvent", type=kind, **place)

    def press(self, key, code):
        """Press a key."""
        text = {"text": "\r"} if key == "Enter" else {}
        names = {"key": key, "code": key, "windowsVirtualKeyCode": code}
        self.send("Input.dispatchKeyEvent", type="keyDown", **names, **text)
        self.send("Input.dispatchKeyEvent", type="keyUp", **names)

    def picture(self, path, whole=False):
        """Save what is seen, or the whole page, as PNG."""
        data = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(data["data"]))

    def paper(self, path):
        """Save the page as it would be printed, as PDF."""
        data = self.send("Page.printToPDF", preferCSSPageSize=True, printBackground=False)
        path.write_bytes(base64.b64decode(data["data"]))

    def close(self):
        """End the browser."""
        self._session = None
        try:
            self.send("Browser.close")
            self._process.wait(10)
        except (OSError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        os.close(self._read)
        os.close(self._write)

    def _next(self, seconds=60):
        """The next message; events are noted."""
        deadline = time.monotonic() + seconds
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._read], [], [], deadline - time.monotonic())
            piece = os.read(self._read, 1 << 20) if ready else b""
            if not piece:
                raise OSError("the browser does not answer")
            self._rest += piece
        line, self._rest = self._rest.split(b"\0", 1)
        message = json.loads(line)
        self._note(message.get("method", ""), message.get("params", {}))
        return message

    def _note(self, event, said):
        self._events.append(event)
        if event == "Runtime.consoleAPICalled" and said["type"] in {"error", "warning", "assert"}:
            self.errors.append(said["args"])
        elif event == "Runtime.exceptionThrown":
            self.errors.append(said["exceptionDetails"])
        elif event == "Log.entryAdded" and said["entry"]["level"] in {"error", "warning"}:
            self.errors.append(said["entry"])
        elif event == "Network.requestWillBeSent":
            self.requests.append(said["request"]["url"])
