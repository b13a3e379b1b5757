"""What needs a real browser: skipped where there is none, but never in CI, where `make test` has installed it."""

from __future__ import annotations

import os
import shutil

import pytest

CHROMIUM = shutil.which("chromium")

needs_chromium = pytest.mark.skipif(
    CHROMIUM is None and not os.environ.get("CI"), reason="`make test` installs Chromium; it is not here yet"
)
