"""Which parameters of an explanation go together, and whom each mode protects."""

from __future__ import annotations

from typing import Final

from wallflower.errors import ParameterError
from wallflower.privacy import Kind, Loss, Neighbours
from wallflower.queries.explain.detectors import ClampedGrubbs, Distance, FixedBins, Tukey
from wallflower.queries.explain.detectors.names import name_of
from wallflower.queries.explain.parameters import ExplainSettings, Settings
from wallflower.queries.explain.space.contexts import predicate
from wallflower.query import require_settings_of_mode

MOST: Final = 100
MODES: Final = ("dp", "ocdp")
SEARCHES: Final = ("direct", "best-first", "uniform", "walk", "dfs", "bfs", "guided")
UTILITIES: Final = ("population", "overlap")
WITH_MARGIN: Final = (ClampedGrubbs, Distance, FixedBins, Tukey)


def check(query: Settings) -> None:
    """Refuse what makes no question, and settle its mode and its loss."""
    _check_names(query)
    _check_numbers(query)
    _check_mode(query)


def _check_names(query: ExplainSettings) -> None:
    if not query.context or len({*query.columns, query.identifier}) < len(query.columns) + 1:
        raise ParameterError(
            "context, metric, identifier: name one context column or more, and each column for one purpose."
        )
    if query.identifier is None and not query.record.isdecimal():
        raise ParameterError(
            f"record: {query.record[:40]!r} is not a row counted from 0. Name the column it is found in: identifier."
        )
    query.domains  # noqa: B018 - refuses what has no public values


def _check_numbers(query: Settings) -> None:
    for name, least, most in (("top", 1, MOST), ("samples", 1, 100_000), ("size", 1, 10**9)):
        number = getattr(query, name)
        if number is not None and (
            isinstance(number, bool) or not isinstance(number, int) or not least <= number <= most
        ):
            raise ParameterError(f"{name}: {number!r} is not a whole number from {least} to {most:,}; pass one.")
    if query.top > query.contexts:
        raise ParameterError(f"top: there are {query.contexts} contexts in all; pass {query.contexts} or less.")
    if not 0 <= query.doubt < 1:
        raise ParameterError(f"doubt: {query.doubt} is not from 0 to below 1; it is a part of the loss, such as 1/10.")
    if not 0 < query.clear <= 1:
        raise ParameterError(f"clear: {query.clear!r} is not a share above 0; pass one such as 0.1.")


def _check_mode(query: Settings) -> None:
    found = query.kind_of_detector
    if query.mode is None and found not in WITH_MARGIN:
        raise ParameterError(
            f"detector: {name_of(query.detector)} has no margin, so there is no differential "
            "privacy for it. Choose tukey, distance, bins or clamped-grubbs, or accept the weaker relation of the "
            "paper with mode ocdp."
        )
    mode = query.mode or "dp"
    if mode not in MODES or (mode == "dp" and found not in WITH_MARGIN):
        raise ParameterError(
            f"mode: {mode!r} is not possible here; it is dp for a detector with a margin (tukey, distance, bins, "
            "clamped-grubbs), or ocdp. Choose one."
        )
    object.__setattr__(query, "mode", mode)
    object.__setattr__(query, "loss", _loss_in_mode(query.loss, mode))
    _check_choices(query)


def _loss_in_mode(loss: Loss, mode: str) -> Loss:
    """The loss, said of one other record added or removed."""
    kind = Kind.PURE if mode == "dp" else Kind.OUTPUT_CONSTRAINED
    if loss.delta or loss.kind not in (Kind.PURE, kind) or not loss.amount:
        raise ParameterError(f"loss: explain in mode {mode} spends an epsilon above 0, without delta. Pass one.")
    return Loss(loss.amount, kind=kind, neighbours=Neighbours.ADD_REMOVE)


def _check_choices(query: Settings) -> None:
    rated = hasattr(query.utility, "sensitivity")  # a function of the user's
    utility: object = query.utility
    if callable(utility) and not rated:
        raise ParameterError(
            "utility: a function needs its sensitivity, the most that one other record changes it by. Without it "
            "there is no guarantee. Pass wallflower.CustomUtility(function, sensitivity=...)."
        )
    for name, known in (("utility", UTILITIES), ("search", (None, *SEARCHES))):
        if getattr(query, name) not in known and not (rated and name == "utility"):
            raise ParameterError(
                f"{name}: {getattr(query, name)!r} is not known; choose among {', '.join(filter(None, known))}."
            )
    require_settings_of_mode(query)
    if (query.near is None) != (query.utility != "overlap"):
        raise ParameterError("near: overlap needs the bits of a context, and nothing else does. Pass both or neither.")
    for bits in filter(None, (query.near, query.start)):
        predicate(query.domains, bits)
    if query.search in ("best-first", "guided") and rated:
        raise ParameterError(f"search: {query.search} needs a utility that counts records. Search another way.")
    if query.start is not None and not query.unseen:
        raise ParameterError(
            "start: a start that was chosen by looking at the data is not covered by any guarantee. Pass unseen if it "
            "was not, or leave start out."
        )
