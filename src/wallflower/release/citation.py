"""How a release is cited: what was asked of what, when, which entry of which ledger says so, and where it is."""

from __future__ import annotations

from datetime import date
from typing import Any

from wallflower.release import Release


def day_words(release: Release[Any]) -> str:
    """The day of the charge, as it is written in a text; nothing where it is not known."""
    try:
        day = date.fromisoformat(release.charged_at[:10])
    except ValueError:
        return ""
    return f"{day.day} {day:%B %Y}"


def citation(release: Release[Any], *, publisher: str, link: str) -> str:
    """One text that finds the release again."""
    terms = f", {release.terms}" if release.terms else ""
    day = day_words(release)
    parts = (
        f"{publisher}: {release.question}" if publisher else release.question,
        f"Data set {release.dataset}, {release.facts}{terms}; {release.guarantee.loss}.",
        f"Release {release.ledger_id} of its ledger{f', {day}' if day else ''}.",
        f"wallflower {release.version}.",
        link,
    )
    return " ".join(filter(None, parts))
