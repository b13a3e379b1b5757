"""The tables of a new ledger in SQLite, as the revisions leave them: a new file is made at once, and what brings an old
one over is loaded for an old one only. `tests/ledger/test_ledger_open.py` holds the two against each other."""

from __future__ import annotations

from typing import Final

HEAD: Final = "0003"

_WORDS: Final = (
    *("analyst", "account", "kind", "amount", "delta", "neighbours", "label", "body", '"key"'),
    *("unit", "factor", "epsilon", "booked_delta", "rho", "names", "claim"),
)
_ENTRIES: Final = (
    "id INTEGER NOT NULL",
    *(f"{name} TEXT NOT NULL" for name in ("time", "event", "dataset")),
    *(f"{name} TEXT" for name in _WORDS),
    "charge INTEGER",
    *(f"{name} TEXT NOT NULL" for name in ("previous", "hash")),
    "PRIMARY KEY (id)",
    "CHECK (event IN ('grant', 'allocate', 'charge', 'release', 'account', 'limit', 'share', 'allowance'))",
    'UNIQUE (dataset, "key")',
    "UNIQUE (charge)",
    "FOREIGN KEY(charge) REFERENCES entries (id)",
)
_FINGERPRINTS: Final = (
    *(f"{name} TEXT NOT NULL" for name in ("dataset", "kind", "tag")),
    "PRIMARY KEY (dataset, kind, tag)",
    "CHECK (kind IN ('rows', 'least', 'source'))",
)
_TABLES: Final = {
    "alembic_version": ("version_num VARCHAR(32) NOT NULL", "CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)"),
    "entries": _ENTRIES,
    "fingerprints": _FINGERPRINTS,
}
_INDEXES: Final = {
    "entries_spent": "entries (dataset, account, event, analyst, amount, delta, id)",
    "entries_booked": "entries (dataset, event, unit, analyst, epsilon, booked_delta, rho, id)",
    "entries_names": "entries (dataset, names) WHERE names IS NOT NULL",
    "entries_event": "entries (event, dataset, id)",
    "fingerprints_tag": "fingerprints (tag)",
}
_FIXED: Final = "the ledger is append-only"
# REPLACE deletes the row it replaces without firing the guard against DELETE
_REPLACED: Final = (
    "EXISTS (SELECT 1 FROM entries WHERE id = NEW.id OR charge = NEW.charge "
    "OR (dataset = NEW.dataset AND key = NEW.key))"
)
_GUARDS: Final = {  # against what, and what is said then
    "update": ("UPDATE ON entries", _FIXED),
    "delete": ("DELETE ON entries", _FIXED),
    "replace": (f"INSERT ON entries WHEN {_REPLACED}", _FIXED),
    "outdated": (
        "INSERT ON entries WHEN NEW.event IN ('grant', 'allocate') OR (NEW.event = 'charge' AND NEW.unit IS NULL)",
        "this ledger has one account for each data set now, upgrade wallflower",
    ),
}
STATEMENTS: Final = (
    *(f"CREATE TABLE {name} ({', '.join(parts)})" for name, parts in _TABLES.items()),
    *(f"CREATE INDEX {name} ON {columns}" for name, columns in _INDEXES.items()),
    *(
        f"CREATE TRIGGER entries_no_{name} BEFORE {change} BEGIN SELECT RAISE(ABORT, '{words}'); END"
        for name, (change, words) in _GUARDS.items()
    ),
    f"INSERT INTO alembic_version (version_num) VALUES ('{HEAD}')",  # noqa: S608 - a constant
)
