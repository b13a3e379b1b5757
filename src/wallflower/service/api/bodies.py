"""Request bodies: models of what routes accept, and the model of each kind of query, made from its parameters."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import date
from fractions import Fraction
from typing import Annotated, Any, Final, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, WithJsonSchema, create_model

from wallflower.errors import ParameterError
from wallflower.ledger.limits import Accounting
from wallflower.privacy import Loss
from wallflower.query import Query
from wallflower.query.parameter import (
    LOSS_HELP,
    REQUIRED,
    Parameter,
    Question,
    entries_of,
    fill,
    list_parameters,
    loss_of,
    resolve_releases,
    spends,
)
from wallflower.release import Release
from wallflower.schema import Schema
from wallflower.schema.person import AGGREGATES
from wallflower.service.core.access.tokens import Scope
from wallflower.units import Basis, Protection, Rows

FindRelease = Callable[[int], Release[Any]]

_MAX_ITEMS: Final = 1000
_MAX_INTEGER: Final = 2**53  # larger integers are not exact in JavaScript
_FORCE: Final = "force"

_NUMBER: Final = {"type": "number", "minimum": 0}
Text = Annotated[str, Field(max_length=200)]
_EXACT: Final = {"type": "string", "pattern": r"^[0-9]+([./][0-9]+)?([eE][-+]?[0-9]+)?$", "examples": ["0.5"]}


class Digits(float):
    """A number that remembers its digits: 0.1 in a body is exactly one tenth."""

    text: str

    def __new__(cls, text: str) -> Self:
        digits = super().__new__(cls, text)
        digits.text = text
        return digits


def _keep_digits(value: Any) -> Any:
    """Return a JSON number as the digits that were sent; other values are checked where they are used."""
    if type(value) is int:
        return str(value)
    return value.text if isinstance(value, Digits) else value


# Parsed where it is used, so that every surface refuses it in the same words.
Exactly = Annotated[Any, AfterValidator(_keep_digits), WithJsonSchema({"anyOf": [_EXACT, _NUMBER]})]
Reason = Annotated[str, Field(min_length=1, max_length=1000)]
Positive = Annotated[int, Field(ge=1, le=10**9)]
Day = Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$", examples=["2030-12-31"])]
Number = Annotated[float, Field(allow_inf_nan=False, ge=-1e300, le=1e300)]
_TYPES: Final[Mapping[Any, Any]] = {
    int: Annotated[int, Field(ge=-_MAX_INTEGER, le=_MAX_INTEGER)],
    float: Number,
    str: Text,
    bool: bool,
    Fraction: Exactly,
    Schema: dict[str, Any],
    tuple[str, ...]: Annotated[list[Text], Field(max_length=_MAX_ITEMS)],
    tuple[float, ...]: Annotated[list[Number], Field(max_length=_MAX_ITEMS)],
    tuple[tuple[str, ...], ...]: Annotated[list[list[Text]], Field(max_length=_MAX_ITEMS)],
    tuple[tuple[float, ...], ...]: Annotated[list[list[Number]], Field(max_length=_MAX_ITEMS)],
}


class Body(BaseModel):
    """A request body: unknown names and values of another type are refused."""

    model_config = ConfigDict(strict=True, extra="forbid")


def parse_body(body: bytes) -> Any:
    """Parse JSON: a repeated name is an error, and a float remembers its digits."""
    return json.loads(body, object_pairs_hook=_refuse_repeated_names, parse_float=Digits)


def _refuse_repeated_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) < len(pairs):
        raise json.JSONDecodeError("a name is repeated", "", 0)
    return table


class LossBody(Body):
    """A privacy loss, exactly as written."""

    epsilon: Exactly | None = Field(None, description=LOSS_HELP["epsilon"])
    delta: Exactly | None = Field(None, description=LOSS_HELP["delta"], examples=["1e-6"])
    rho: Exactly | None = Field(None, description=LOSS_HELP["rho"], examples=["0.02"])

    def loss(self, asker: str) -> Loss:
        return loss_of(asker, epsilon=self.epsilon, delta=self.delta, rho=self.rho)


class Grant(LossBody):
    """The total budget of a data set."""

    reason: Reason = Field(description="why, for the record", examples=["study 12"])
    accounting: Accounting | None = Field(
        None, description="composition: sum, concentrated or either; default: sum without delta, either with one"
    )
    convert: Exactly | None = Field(None, description="part of delta for zCDP composition; default: half")
    pace: Exactly | None = Field(None, description="epsilon that may be spent per year, within the limit")
    expires: Day | None = Field(None, description="last day of the budget")
    confirm: bool = Field(False, description="required above epsilon 10, which is almost no protection")

    def terms(self) -> dict[str, Any]:
        """Return the other arguments of `Core.grant`."""
        own = {name: getattr(self, name) for name in ("reason", "confirm", "accounting", "convert", "pace")}
        return own | {"expires": None if self.expires is None else parse_date(self.expires)}


class Quota(LossBody):
    """The quota of one analyst; 0 removes it."""

    analyst: Text = Field(description="name of the analyst's token", examples=["ana"])
    reason: str = Field("", max_length=1000, description="why, for the record")


class ProtectionBody(Body):
    """The unit of protection."""

    rows: Rows = Field("people", description="meaning of a row: people or time")
    unit: Basis = Field("record", description="change of the rows that is hidden")
    window: Positive | None = Field(None, description="length of the unit window, in observations")
    units_per_person: Positive = Field(1, description="maximum number of these units per person")
    times: Positive | None = Field(None, description="maximum number of observations per person")


class PersonBody(Body):
    """Who the rows belong to, where a person has several: with `rollup` or with `max_rows`."""

    id: Text = Field(description="column that identifies a person", examples=["patient_no"])
    rollup: dict[Text, Text] | None = Field(
        None,
        description=f"one record per person: an aggregate for each column, one of {', '.join(AGGREGATES)}",
        examples=[{"pulse": "max", "visits": "count"}],
    )
    max_rows: int | None = Field(None, description="number of rows that are kept of a person; costs are multiplied")
    order: Text | None = Field(None, description="column that orders a person's rows; default: order of the file")
    time: Text | None = Field(
        None, description="rows are readings of a stream: the column of times; `rollup` has one column then"
    )
    missing_id: Text = Field("own", description="own: a row without identifier is its own person; refuse: an error")


class DeclarationBody(ProtectionBody):
    """The unit of protection of a data set, before its first query, and the account that it spends from."""

    account: Text | None = Field(None, description="account it spends from; default: unchanged", examples=["ward"])
    apart: list[Text] = Field(
        [], max_length=100, description="data sets with the same content that are about other people"
    )
    reason: str = Field("", max_length=1000, description="why, for the record")

    def protection(self) -> Protection | None:
        """Return the declared unit; None if the body has none."""
        own = {name: getattr(self, name) for name in ProtectionBody.model_fields if name in self.model_fields_set}
        return Protection(**own) if own else None


class Allowance(Body):
    """Output-constrained answers, which do not satisfy differential privacy."""

    epsilon: Exactly = Field(description="total ε for them; 0 forbids them")
    reason: Reason = Field(description="why, for the record", examples=["the ethics board has agreed"])


class NamingBody(Body):
    """Lists of names, which protect nobody whom they name."""

    detector: int = Field(ge=1, le=2**31 - 1, description="ledger entry of the detector")
    most: int = Field(ge=0, le=10**9, description="names that all lists together may request; 0 forbids them")
    by_row: bool = Field(False, description="whether rows are in order of arrival, so that lists may name row numbers")
    reason: Reason = Field(description="why, for the record", examples=["review of records"])


class LettersBody(Body):
    """People who may read their own letters."""

    detector: int = Field(ge=1, le=2**31 - 1, description="ledger entry of the detector")
    column: Text = Field(description="column of identifiers", examples=["patient_no"])
    identifiers: list[Text] = Field(min_length=1, max_length=1000, description="whose letters may be read")
    days: int = Field(30, ge=1, le=365, description="days until the tokens expire")


class NewToken(Body):
    """A token to issue."""

    name: Text = Field(description="name of its holder, under which the ledger records an analyst", examples=["ana"])
    scope: Scope = Field(description="scope", examples=["analyst"])
    days: int | None = Field(90, ge=1, le=3650, description="days until it expires; null: never")
    groups: list[Text] = Field(
        default_factory=list, max_length=100, description="groups of the settings whose data sets it may see"
    )


class NewDataset(Body):
    """A data set to register."""

    name: Text = Field(description="name; the budget is tracked under it", examples=["ward"])
    source: str | None = Field(
        None, max_length=1000, description="file or folder of Parquet, relative to a root; default: a stream"
    )
    facts: dict[str, Any] = Field(
        description="its public schema, as `wallflower data` has it", alias="schema", examples=[{"columns": ["age"]}]
    )
    records: list[Text] = Field([], max_length=_MAX_ITEMS, description="records that analysts may name in a query")
    account: Text | None = Field(None, description="budget that it shares; default: its own")
    protects: ProtectionBody | None = Field(None, description="unit of protection")
    person: PersonBody | None = Field(
        None, description="who the rows belong to, as [person] of the schema; the unit of protection is a person then"
    )

    def register_arguments(self) -> dict[str, Any]:
        """Return the other arguments of `Core.register`."""
        own = {name: getattr(self, name) for name in ("source", "records", "account")}
        protects = None if self.protects is None else self.protects.model_dump(exclude_unset=True)
        person = None if self.person is None else self.person.model_dump(exclude_unset=True)
        return own | {"schema": self.facts, "protects": protects, "person": person}


class AccessBody(Body):
    """An analyst who may see a data set."""

    analyst: Text = Field(description="name of a token or a person, or * for every analyst", examples=["ana"])


class NewRequest(Body):
    """A request for budget."""

    reason: Reason = Field(description="reason, for the steward", examples=["the second wave of study 12"])
    epsilon: Exactly | None = Field(None, description="ε you would like to spend; default: any amount")
    question: Text | None = Field(None, description="kind of query it is for", examples=["count"])


class GrantForRequest(Grant):
    """The new total budget, and a remark for the analyst."""

    word: str = Field("", max_length=1000, description="remark for the analyst")


class Decline(Body):
    """The answer to a request that is declined."""

    word: Reason = Field(description="reason, for the analyst", examples=["the survey ends this year"])


class Observations(Body):
    """Observations of a watch, in order."""

    rows: list[list[Number | None] | Number | None] = Field(
        max_length=100_000, description="an entry for each column, null where there is none", examples=[[[0.5], [7]]]
    )
    times: list[Text] | None = Field(
        None, max_length=100_000, description="time of each observation, for a seasonal baseline"
    )
    first: int | None = Field(
        None,
        ge=1,
        le=_MAX_INTEGER,
        description="number of the first row, from 1; earlier decisions are repeated",
    )


class Records(Body):
    """Records of the caller, to be scored."""

    records: list[list[Number]] = Field(
        min_length=1, max_length=100_000, description="a number for each column of the detector", examples=[[[0.5, 7]]]
    )
    contributions: bool = Field(False, description="also return the contribution of each column")


def parse_date(text: str) -> date:
    """Parse an ISO date."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise ParameterError("expires: it is a day such as 2030-12-31. Correct it.") from None


def body_model(question: Question) -> type[Body]:
    """Make the body of a kind of query from its parameters."""
    own: dict[str, Any] = {parameter.name: _field(parameter) for parameter in list_parameters(question)}
    if spends(question):
        own |= {name: (item.annotation, item) for name, item in LossBody.model_fields.items()}
    own[_FORCE] = (bool, Field(False, description="run even if the plan predicts mostly noise"))
    name = question.__name__
    made: type[Body] = create_model(name, __base__=Body, __doc__=question.question, **own)
    made.model_config["json_schema_extra"] = {"examples": [example_body(question)]}
    made.model_rebuild(force=True)
    return made


def parse_query(question: Question, body: Body, find: FindRelease | None = None) -> Query[Any, Any]:
    """Make the query of a body. `find` returns a release that it names by number, or refuses it to the caller."""
    hints = {parameter.name: parameter.hint for parameter in list_parameters(question)}
    given = {name: getattr(body, name) for name in body.model_fields_set if name != _FORCE}
    rich = {name: _rich(value, hints.get(name)) for name, value in given.items()}
    if find is not None:
        rich = resolve_releases(question, rich, lambda number: find(number).to_dict())
    return fill(question, rich)


def is_forced(body: Body) -> bool:
    """Return whether the query runs even if the plan predicts mostly noise."""
    return bool(getattr(body, _FORCE, False))


def example_body(question: Question) -> dict[str, Any]:
    """Return the body of the example of a kind of query."""
    return entries_of(question.example())


def _field(parameter: Parameter) -> tuple[Any, Any]:
    if parameter.release is not None and parameter.release.as_value:
        kind: Any = Annotated[int, Field(ge=1, le=2**31 - 1)] | dict[str, Any]
    else:
        kind = Literal[parameter.choices] if parameter.choices else _TYPES[parameter.hint]
    hint = kind | None if parameter.optional or parameter.default is None else kind
    default = ... if parameter.default is REQUIRED else _plain(parameter.default)
    return hint, Field(default, description=parameter.help)


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(map(_plain, value))
    return str(value) if isinstance(value, Fraction) else value


def _rich(value: Any, hint: Any) -> Any:
    if hint is Schema and isinstance(value, dict):
        return Schema.from_json(value)
    return tuple(_rich(item, None) for item in value) if isinstance(value, list) else value
