"""A question as a form: what it asks for, in words, read from its fields.

One description has many faces: the methods of `wf.open`, the options of the command line, the fields of a web form.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, fields
from difflib import get_close_matches
from fractions import Fraction
from functools import cache
from types import NoneType, UnionType
from typing import Any, Final, Literal, Union, get_args, get_origin, get_type_hints

from wallflower.errors import ParameterError
from wallflower.privacy import Exact, Kind, Loss
from wallflower.query.contract import Condition, FindRelease, Query, ReleaseInput, ordered_fields
from wallflower.text import t

Question = type[Query[Any, Any]]
Names = Literal["numbers", "measured", "coded", "labels", "times", "groups", "identifiers", "record", "context", "rows"]
Span = Literal["low", "high", "sum", "distance", "square", "radius"]

REQUIRED: Final = inspect.Parameter.empty
LOSS_HELP: Final[Mapping[str, str]] = {
    "epsilon": t("privacy loss ε to spend, exactly as written: 0.5 or 1/2"),
    "delta": t("δ of (ε, δ)-differential privacy, such as 1e-6; default: 0, which is pure"),
    "rho": t("zero-concentrated privacy loss ρ, instead of ε and δ"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One thing a question asks for. `hint` is its type without None; `default` is REQUIRED when there is none.

    `also` is what only Python can pass instead, such as an object with a method.
    """

    name: str
    hint: Any
    also: tuple[Any, ...] = ()
    optional: bool
    default: Any
    help: str
    choices: tuple[str, ...] = ()
    names: Names | None = None  # what of a table it names: columns of a kind, a record, or a context
    span: Span | None = None  # what its number is on the scale of the columns: see `Span`
    when: Condition | None = None  # the mode that has this setting; None: every mode
    release: ReleaseInput | None = None  # the earlier release that it takes, if it takes one


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterGroup:
    """What belongs together: the settings of one mode, or those that every mode has."""

    when: Condition | None
    parameters: tuple[Parameter, ...]


def group_parameters(question: Question) -> tuple[ParameterGroup, ...]:
    """What a question asks for, mode by mode, those of every mode first."""
    found: dict[Condition | None, list[Parameter]] = {None: []}
    for parameter in list_parameters(question):
        found.setdefault(parameter.when, []).append(parameter)
    return tuple(ParameterGroup(when=when, parameters=tuple(group)) for when, group in found.items())


@cache
def list_parameters(question: Question) -> tuple[Parameter, ...]:
    """What a question asks for, but its loss."""
    hints = get_type_hints(question)
    return tuple(_make_parameter(item, hints[item.name]) for item in ordered_fields(question) if item.name != "loss")


def spends(question: Question) -> bool:
    """Whether a loss is among the parameters."""
    return any(item.name == "loss" for item in fields(question))


def fill(question: Question, given: Mapping[str, Any]) -> Query[Any, Any]:
    """The question with these parameters; a loss is stated as `loss`, `epsilon` (and `delta`) or `rho`."""
    known = {parameter.name: parameter for parameter in list_parameters(question)}
    words = ("loss", *LOSS_HELP) if spends(question) else ()
    for name in given:
        if name not in known and name not in words:
            raise ParameterError(
                f"{question.kind}: {name} is not asked for; it takes {', '.join((*known, *words))}. "
                + closest(name, (*known, *words))
            )
    for name, parameter in known.items():
        if parameter.default is REQUIRED and name not in given:
            raise ParameterError(f"{question.kind}: {name} is missing ({parameter.help}). Pass {name}=...")
    parameters = {name: value for name, value in given.items() if name in known}
    if spends(question):
        parameters["loss"] = loss_of(question.kind, **{name: given.get(name) for name in words})
    return question(**parameters)


def resolve_releases(question: Question, given: Mapping[str, Any], find: FindRelease) -> dict[str, Any]:
    """Replace the number of a ledger entry by the released value, for every parameter that takes the value.

    `find` returns the release of an entry as plain JSON, or None if there is none that the caller may have.
    """
    resolved = dict(given)
    for parameter in list_parameters(question):
        number = given.get(parameter.name)
        if parameter.release is None or not parameter.release.as_value or type(number) is not int:
            continue
        stored = find(number)
        if stored is None or not parameter.release.accepts(stored["kind"], stored["value"]):
            kind, part = parameter.release.kind, parameter.release.part
            raise ParameterError(
                f"{parameter.name}: entry {number} of the ledger is not a release of {kind}"
                f"{f' with a {part}' if part else ''}. Ask {kind} first, and pass its release."
            )
        resolved[parameter.name] = stored["value"]
    return resolved


def entries_of(query: Query[Any, Any]) -> dict[str, Any]:
    """What was filled in, as plain JSON, without what is left at its default: `fill` makes the same query of it."""
    plain, asked = query.to_json(), type(query)
    given = {
        parameter.name: plain[parameter.name]
        for parameter in list_parameters(asked)
        if parameter.default is REQUIRED or getattr(query, parameter.name) != parameter.default
    }
    return given | (_loss_words(query.cost()) if spends(asked) else {})


def loss_of(
    asker: str,
    *,
    epsilon: Exact | None = None,
    delta: Exact | None = None,
    rho: Exact | None = None,
    loss: Loss | None = None,
) -> Loss:
    """The loss that was stated, in whichever way."""
    stated = {"epsilon": epsilon, "delta": delta, "rho": rho, "loss": loss}
    match [name for name, value in stated.items() if value is not None]:
        case ["loss"] if isinstance(loss, Loss):
            return loss
        case ["epsilon"] | ["epsilon", "delta"] if epsilon is not None:
            return Loss(epsilon, delta=0 if delta is None else delta)
        case ["rho"] if rho is not None:
            return Loss.zcdp(rho)
        case []:
            raise ParameterError(
                f"{asker}: no privacy loss is stated, and none is assumed. State epsilon (with or without delta), "
                "or rho; epsilon 0.5 is a careful start."
            )
        case _:
            raise ParameterError(
                f"{asker}: a loss is stated once: as epsilon (with or without delta), as rho, or as a Loss. Keep one."
            )


def closest(name: str, known: Iterable[str]) -> str:
    """The last beat of an error about an unknown name."""
    close = get_close_matches(name, list(known), n=1)
    return f"Did you mean {close[0]}?" if close else "Choose among these."


def find(kind: str, questions: Iterable[Question]) -> Question:
    """The question of this name."""
    known = {question.kind: question for question in questions}
    if kind not in known:
        raise ParameterError(f"{kind!r} is not a question; there are {', '.join(known)}. {closest(kind, known)}")
    return known[kind]


def answer_type(question: Question) -> Any:
    """What a release of the question has as its value: what `released` returns, or the second type of its Query."""
    if (released := get_type_hints(question.released).get("return", Any)) is not Any:
        return released
    bases = (base for part in question.__mro__ for base in vars(part).get("__orig_bases__", ()))
    return next((get_args(base)[1] for base in bases if issubclass(get_origin(base) or object, Query)), Any)


def signature(question: Question, *more: inspect.Parameter, returns: Any = REQUIRED) -> inspect.Signature:
    """How the question is called, for help(), completion and notebooks; `returns` is what the call gives."""
    keyword = inspect.Parameter.KEYWORD_ONLY
    asked = [
        inspect.Parameter(parameter.name, keyword, default=parameter.default, annotation=_accepted_type(parameter))
        for parameter in list_parameters(question)
    ]
    losses = [inspect.Parameter(name, keyword, default=None, annotation=Exact | None) for name in LOSS_HELP]
    losses += [inspect.Parameter("loss", keyword, default=None, annotation=Loss | None)]
    return inspect.Signature([*asked, *(losses if spends(question) else ()), *more], return_annotation=returns)


def describe(question: Question) -> str:
    """A docstring made of the question and what its fields say."""
    every, *modes = group_parameters(question)
    words = {parameter.name: _with_choices(parameter) for parameter in every.parameters}
    words |= {**LOSS_HELP, "loss": "the same as a Loss"} if spends(question) else {}
    parts = [words, *({parameter.name: _with_choices(parameter) for parameter in mode.parameters} for mode in modes)]
    width = max((len(name) for part in parts for name in part), default=0)
    headings = ["", *(f"\n{str(mode.when and mode.when.text).capitalize()}:" for mode in modes)]
    lines = [
        line
        for heading, part in zip(headings, parts, strict=True)
        for line in (heading, *(f"{name:<{width}}  {text}" for name, text in part.items()))
    ]
    return "\n".join([question.question, *lines])


def _loss_words(loss: Loss) -> dict[str, str]:
    if loss.kind is Kind.ZCDP:
        return {"rho": str(loss.amount)}
    return {"epsilon": str(loss.amount)} | ({"delta": str(loss.delta)} if loss.delta else {})


def _make_parameter(item: Field[Any], hint: Any) -> Parameter:
    parts = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    own = tuple(part for part in parts if part is not NoneType)
    default = item.default if item.default is not MISSING else REQUIRED
    if item.default_factory is not MISSING:
        default = item.default_factory()
    return Parameter(
        name=item.name,
        hint=own[0],
        also=own[1:],
        optional=len(own) < len(parts),
        default=default,
        help=str(item.metadata.get("help", "")),
        choices=tuple(item.metadata.get("choices", ())),
        names=item.metadata.get("names"),
        span=item.metadata.get("span"),
        when=item.metadata.get("when"),
        release=item.metadata.get("release"),
    )


def _accepted_type(parameter: Parameter) -> Any:
    hint = (
        Exact if parameter.hint is Fraction else parameter.hint
    )  # a share is given as text, and read exactly by the question
    hint = Literal[parameter.choices] if parameter.choices else hint
    return Union[(hint, *parameter.also, *((None,) if parameter.optional else ()))]


def _with_choices(parameter: Parameter) -> str:
    return f"{parameter.help}: {', '.join(parameter.choices)}" if parameter.choices else parameter.help
