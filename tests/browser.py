"""What needs a real browser: skipped where there is none, but never in CI, where `make test` has installed it."""

from __future__ import annotations

import os
import shutil
from importlib.util import find_spec

import pytest

CHROMIUM = shutil.which("chromium")

needs_chromium = pytest.mark.skipif(
    CHROMIUM is None and not os.environ.get("CI"), reason="`make test` installs Chromium; it is not here yet"
)

AXE = "axe_playwright_python"
needs_axe = pytest.mark.skipif(
    find_spec(AXE) is None and not os.environ.get("CI"), reason="`make test` installs axe; it is not here yet"
)
