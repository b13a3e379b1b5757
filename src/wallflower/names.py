"""Names that budgets hang on: one spelling each, so that no look-alike starts with a fresh budget."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from wallflower.errors import ParameterError

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}", re.ASCII)
_GAP: Final = re.compile(r"[^a-z0-9._-]+", re.ASCII)
_LONGEST: Final = 200
_LATIN: Final = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "æ": "ae", "œ": "oe", "ø": "o", "ł": "l", "đ": "d"})


def name_callable(function: object) -> str:
    """The name of a function of the user's: where it is defined, and its name there; never its address in memory.

    >>> import functools, statistics
    >>> name_callable(statistics.mean), name_callable(functools.partial(statistics.mean))
    ('statistics.mean', 'statistics.mean')
    """
    while hasattr(function, "func"):  # functools.partial
        function = function.func
    named = function if hasattr(function, "__qualname__") else type(function)
    return f"{named.__module__}.{named.__qualname__}"


def check_label(label: str | None) -> None:
    """Refuse a label that would not be readable on one line of a release."""
    if label is not None and not (isinstance(label, str) and 0 < len(label) <= _LONGEST and label.isprintable()):
        raise ParameterError(f"name: it must be printable text of 1 to {_LONGEST} characters. Pass one, or omit it.")


def account_name(name: str) -> str | None:
    """The one spelling of a name, or None for what cannot be one.

    >>> account_name("ICU-2024"), account_name("іcu")  # the second begins with a Cyrillic letter
    ('icu-2024', None)
    """
    folded = _fold(name)
    return folded if _NAME.fullmatch(folded) else None


def nearest_name(name: str) -> str | None:
    """The name that a free title suggests: gaps of plain signs become hyphens, other letters make none.

    >>> nearest_name("My patients (2024)"), nearest_name("患者")
    ('my-patients-2024', None)
    """
    folded = _fold(name)
    return account_name(_GAP.sub("-", folded).strip("-._")) if folded.isascii() else None


def name_from_file(stem: str) -> str | None:
    """The data set name that a file name suggests: Latin letters lose their accents, other signs become hyphens.

    None if it has letters of another script: their owner must choose the name.

    >>> name_from_file("Covid Labor 2020 – März"), name_from_file("Ångström"), name_from_file("患者")
    ('covid-labor-2020-maerz', 'angstroem', None)
    """
    spelt = _fold(stem).translate(_LATIN)
    plain = "".join(sign for sign in unicodedata.normalize("NFKD", spelt) if not unicodedata.combining(sign))
    if any(sign.isalpha() and not sign.isascii() for sign in plain):
        return None
    return account_name(_GAP.sub("-", plain).strip("-._"))


def require_account_name(what: str, name: str) -> str:
    """The one spelling of a name, or a refusal that says what a name is."""
    found = account_name(name) if isinstance(name, str) else None
    if found is None:
        raise ParameterError(
            f"{what}: {str(name)[:40]!r} cannot be the name that a budget is tracked under. It takes 1 to 100 of "
            "the letters a to z, digits, and . _ - after the first; capitals are read as small. Choose another; titles "
            "are free."
        )
    return found


def require_names(**names: str) -> None:
    """Refuse what cannot name a person or a key."""
    for what, name in names.items():
        fits = isinstance(name, str) and 1 <= len(name) <= _LONGEST and name.isprintable() and name == name.strip()
        if not fits:
            raise ParameterError(
                f"{what}: {str(name)[:40]!r} cannot be a name here. It takes 1 to {_LONGEST} printable characters "
                "without a space at either end. Choose another."
            )


def _fold(name: str) -> str:
    return unicodedata.normalize("NFKC", name).casefold()
