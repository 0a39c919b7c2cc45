"""Runs in a process of their own that are ended from outside once so much is kept."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from bnca.experiments.store import Store

SIGNALS = (signal.SIGINT, signal.SIGKILL)


def ended(script, folder, store, *, after, sent):
    """Run a script, end it and its children when `store` has more than so many units.

    Returns what was printed, and the exit status.
    """
    tests = str(Path(__file__).parent)
    work = subprocess.Popen(
        [sys.executable, "-c", script, str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        text=True,
        env={**os.environ, "PYTHONPATH": tests},
    )
    until = time.monotonic() + 120
    while time.monotonic() < until and work.poll() is None:
        if store.exists() and len(Store(store).read()) > after:
            break
        time.sleep(0.02)
    os.killpg(work.pid, sent)
    return work.communicate(timeout=60)[0], work.returncode
