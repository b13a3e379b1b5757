"""Puts this folder where the tests in the folders below find its helpers, whose assertions say what they saw."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("asks", "chromium_visitor", "page_client", "served")
