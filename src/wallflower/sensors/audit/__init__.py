"""Attacks on sensors, which `wallflower audit sensors` runs."""

from __future__ import annotations

from wallflower.sensors.audit.attacks import findings

__all__ = ["findings"]
