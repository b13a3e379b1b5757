"""From the fields of a question to the body of a request, and back: a new question needs nothing here."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine, Mapping
from datetime import date
from fractions import Fraction
from typing import Annotated, Any, Final, Literal, Self

from anyio.to_thread import run_sync
from fastapi import Request
from fastapi.routing import APIRoute
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, WithJsonSchema, create_model
from starlette.responses import Response

from wallflower.curator.api.gate import is_large
from wallflower.curator.desk.access.tokens import Scope
from wallflower.errors import ParameterError
from wallflower.ledger.limits import Accounting
from wallflower.privacy import Loss
from wallflower.queries.watch.seasons import Seasons
from wallflower.query import Query
from wallflower.query.forms import LOSS_HELP, REQUIRED, Blank, Question, blanks, entries_of, fill, loss_of, spends
from wallflower.release import Release
from wallflower.release.baselines import take_baseline
from wallflower.schema import Schema
from wallflower.units import Basis, Protection, Rows

Find = Callable[[int], Release[Any]]

_MOST: Final = 1000
_WHOLE: Final = 2**53
_ANYWAY: Final = "anyway"

_NUMBER: Final = {"type": "number", "minimum": 0}
Text = Annotated[str, Field(max_length=200)]
_EXACT: Final = {"type": "string", "pattern": r"^[0-9]+([./][0-9]+)?([eE][-+]?[0-9]+)?$", "examples": ["0.5"]}


class Digits(float):
    """A number that remembers how it was written: 0.1 in a body is a tenth, and no other number."""

    text: str

    def __new__(cls, text: str) -> Self:
        made = super().__new__(cls, text)
        made.text = text
        return made


def _keep_digits(value: Any) -> Any:
    """A JSON number as the digits that were sent; what is no number is refused where it is read."""
    if type(value) is int:
        return str(value)
    return value.text if isinstance(value, Digits) else value


# Read where it is used, so that every surface refuses it in the same words.
Exactly = Annotated[Any, AfterValidator(_keep_digits), WithJsonSchema({"anyOf": [_EXACT, _NUMBER]})]
Reason = Annotated[str, Field(min_length=1, max_length=1000)]
Positive = Annotated[int, Field(ge=1, le=10**9)]
Day = Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$", examples=["2030-12-31"])]
Number = Annotated[float, Field(allow_inf_nan=False, ge=-1e300, le=1e300)]
_TYPES: Final[Mapping[Any, Any]] = {
    int: Annotated[int, Field(ge=-_WHOLE, le=_WHOLE)],
    float: Number,
    str: Text,
    bool: bool,
    Fraction: Exactly,
    Schema: dict[str, Any],
    Seasons: Annotated[int, Field(ge=1, le=2**31 - 1)] | dict[str, Any],
    tuple[str, ...]: Annotated[list[Text], Field(max_length=_MOST)],
    tuple[float, ...]: Annotated[list[Number], Field(max_length=_MOST)],
    tuple[tuple[str, ...], ...]: Annotated[list[list[Text]], Field(max_length=_MOST)],
    tuple[tuple[float, ...], ...]: Annotated[list[list[Number]], Field(max_length=_MOST)],
}


class Body(BaseModel):
    """Nothing but what is asked for, of exactly the type that is asked for."""

    model_config = ConfigDict(strict=True, extra="forbid")


def name_of(route: APIRoute) -> str:
    """What the description calls a route: the name of its function."""
    return route.name


class StrictRoute(APIRoute):
    """A route that refuses a body in which something is named twice: two readers may take it for two things."""

    def __init__(self, path: str, endpoint: Callable[..., Any], *, response_model: Any = None, **more: Any) -> None:
        """`responses` describes what is answered; it is told as it is, and not read again on its way out."""
        super().__init__(path, endpoint, response_model=None, **more | {"generate_unique_id_function": name_of})

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handle_strictly(request: Request) -> Response:
            return await handle(_StrictRequest(request.scope, request.receive))

        return handle_strictly


class _StrictRequest(Request):
    async def json(self) -> Any:
        body = await self.body()
        return await run_sync(_parse, body) if is_large(body) else _parse(body)


def _parse(body: bytes) -> Any:
    return json.loads(body, object_pairs_hook=_once, parse_float=Digits)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise json.JSONDecodeError("a name is there twice", "", 0)
    return found


class LossBody(Body):
    """A loss, exactly as written."""

    epsilon: Exactly | None = Field(None, description=LOSS_HELP["epsilon"])
    delta: Exactly | None = Field(None, description=LOSS_HELP["delta"], examples=["1e-6"])
    rho: Exactly | None = Field(None, description=LOSS_HELP["rho"], examples=["0.02"])

    def loss(self, asker: str) -> Loss:
        return loss_of(asker, epsilon=self.epsilon, delta=self.delta, rho=self.rho)


class Grant(LossBody):
    """The limit of a data set's account, in all."""

    reason: Reason = Field(description="why, for the record", examples=["study 12"])
    accounting: Accounting | None = Field(
        None, description="how losses add up: left out, sum without delta and either with one"
    )
    convert: Exactly | None = Field(None, description="the part of delta for the sum of squares; default: half")
    pace: Exactly | None = Field(None, description="an epsilon that may be spent a year, within the limit")
    expires: Day | None = Field(None, description="the last day on which anything is answered")
    confirm: bool = Field(False, description="needed above epsilon 10, which promises next to nothing")

    def terms(self) -> dict[str, Any]:
        """All but the loss, as the desk takes it."""
        own = {name: getattr(self, name) for name in ("reason", "confirm", "accounting", "convert", "pace")}
        return own | {"expires": None if self.expires is None else day(self.expires)}


class Allocation(LossBody):
    """A share of the limit that is kept for one analyst; 0 takes it back."""

    analyst: Text = Field(description="who may spend it: the name of a token", examples=["ana"])
    reason: str = Field("", max_length=1000, description="why, for the record")


class ProtectionBody(Body):
    """What a row is, and whose loss is bounded."""

    rows: Rows = Field("people", description="what a row is: one of people, or of time")
    unit: Basis = Field("record", description="which change of the rows is hidden")
    window: Positive | None = Field(None, description="length of the unit window, in observations")
    units_per_person: Positive = Field(1, description="so many of these units a person may have")
    times: Positive | None = Field(None, description="maximum of observations that a person is in, wherever they are")


class DeclarationBody(ProtectionBody):
    """Whose loss a data set counts, said before its first question; and which account it spends from."""

    account: Text | None = Field(None, description="the account it spends from; default: as it is", examples=["ward"])
    apart: list[Text] = Field(
        [], max_length=100, description="data sets with the same content that are about other people all the same"
    )
    reason: str = Field("", max_length=1000, description="why, for the record")

    def protection(self) -> Protection | None:
        """What is declared; None: nothing is said of it."""
        own = {name: getattr(self, name) for name in ProtectionBody.model_fields if name in self.model_fields_set}
        return Protection(**own) if own else None


class Allowance(Body):
    """Output-constrained answers, which are no differential privacy."""

    epsilon: Exactly = Field(description="up to so much in all; 0 closes them")
    reason: Reason = Field(description="why, for the record", examples=["the ethics board has agreed"])


class NewToken(Body):
    """A token to be made."""

    name: Text = Field(description="whose it is; the ledger knows an analyst by it", examples=["ana"])
    scope: Scope = Field(description="what it may do", examples=["analyst"])
    days: int | None = Field(90, ge=1, le=3650, description="how long it is valid; null: for ever")
    groups: list[Text] = Field(
        default_factory=list, max_length=100, description="groups of the settings whose data sets it may see"
    )


class NewDataset(Body):
    """A data set to be registered."""

    name: Text = Field(description="the name its budget hangs on", examples=["ward"])
    source: str | None = Field(
        None, max_length=1000, description="file or folder of Parquet, relative to a root; default: a stream"
    )
    facts: dict[str, Any] = Field(
        description="its public schema, as `wallflower data` has it", alias="schema", examples=[{"columns": ["age"]}]
    )
    records: list[Text] = Field([], max_length=_MOST, description="records that analysts may name in a question")
    account: Text | None = Field(None, description="the budget it shares; default: one of its own")
    protects: ProtectionBody | None = Field(None, description="what a row is, and whose loss its budget bounds")

    def desk_arguments(self) -> dict[str, Any]:
        """All but the name, as the desk takes it."""
        own = {name: getattr(self, name) for name in ("source", "records", "account")}
        protects = None if self.protects is None else self.protects.model_dump(exclude_unset=True)
        return own | {"schema": self.facts, "protects": protects}


class AccessBody(Body):
    """Who is to see a data set."""

    analyst: Text = Field(description="the name of a token, or * for every analyst", examples=["ana"])


class Observations(Body):
    """Observations of a watch, in order."""

    rows: list[list[Number | None] | Number | None] = Field(
        max_length=100_000, description="an entry for each column, null where there is none", examples=[[[0.5], [7]]]
    )
    times: list[Text] | None = Field(
        None, max_length=100_000, description="when each was made, for a baseline by phase"
    )
    first: int | None = Field(
        None, ge=1, le=_WHOLE, description="number of the first row, from 1; decided ones are told again, unlooked"
    )


class Records(Body):
    """Records to be scored, which the caller holds."""

    records: list[list[Number]] = Field(
        min_length=1, max_length=100_000, description="a number for each column of the detector", examples=[[[0.5, 7]]]
    )
    contributions: bool = Field(False, description="tell what each column adds to the score, too")


def day(text: str) -> date:
    """A date as it is written."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise ParameterError("expires: it is a day such as 2030-12-31. Correct it.") from None


def model(question: Question) -> type[Body]:
    """The body that asks this question."""
    own: dict[str, Any] = {blank.name: _field(blank) for blank in blanks(question)}
    if spends(question):
        own |= {name: (item.annotation, item) for name, item in LossBody.model_fields.items()}
    own[_ANYWAY] = (bool, Field(False, description="answer even if the plan says that it is of no use"))
    name = question.__name__
    made: type[Body] = create_model(name, __base__=Body, __doc__=question.question, **own)
    made.model_config["json_schema_extra"] = {"examples": [example(question)]}
    made.model_rebuild(force=True)
    return made


def query_of(question: Question, body: Body, find: Find | None = None) -> Query[Any, Any]:
    """The question that a body asks. `find` gives a release that it names by its number, to whoever may have it."""
    hints = {blank.name: blank.hint for blank in blanks(question)}
    given = {name: getattr(body, name) for name in body.model_fields_set if name != _ANYWAY}
    rich = {name: _rich(value, hints.get(name)) for name, value in given.items()}
    return fill(question, rich if find is None else take_baseline(rich, lambda number: find(number).to_dict()))


def is_wanted(body: Body) -> bool:
    """Whether the answer is wanted even if it is of no use."""
    return bool(getattr(body, _ANYWAY, False))


def example(question: Question) -> dict[str, Any]:
    """The body that asks the question's own example."""
    return entries_of(question.example())


def _field(blank: Blank) -> tuple[Any, Any]:
    kind = Literal[blank.choices] if blank.choices else _TYPES[blank.hint]
    hint = kind | None if blank.optional or blank.default is None else kind
    default = ... if blank.default is REQUIRED else _plain(blank.default)
    return hint, Field(default, description=blank.help)


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(map(_plain, value))
    return str(value) if isinstance(value, Fraction) else value


def _rich(value: Any, hint: Any) -> Any:
    if hint is Schema and isinstance(value, dict):
        return Schema.from_json(value)
    return tuple(_rich(item, None) for item in value) if isinstance(value, list) else value
