"""From the fields of a question to the body of a request, and back: a new question needs nothing here."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model

from wallflower.forms import LOSS_HELP, REQUIRED, Blank, Question, blanks, entries_of, fill, loss_of, spends
from wallflower.privacy import Loss, Unit
from wallflower.query import Query
from wallflower.schema import Schema

_MOST: Final = 1000
_WHOLE: Final = 2**53

Text = Annotated[str, Field(max_length=200)]
Exactly = Annotated[str, Field(max_length=60, pattern=r"^[0-9]+([./][0-9]+)?([eE][-+]?[0-9]+)?$", examples=["0.5"])]
Number = Annotated[float, Field(allow_inf_nan=False, ge=-1e300, le=1e300)]
_TYPES: Final[Mapping[Any, Any]] = {
    int: Annotated[int, Field(ge=-_WHOLE, le=_WHOLE)],
    float: Number,
    str: Text,
    bool: bool,
    Fraction: Exactly,
    Schema: dict[str, Any],
    tuple[str, ...]: Annotated[list[Text], Field(max_length=_MOST)],
    tuple[float, ...]: Annotated[list[Number], Field(max_length=_MOST)],
    tuple[tuple[str, ...], ...]: Annotated[list[list[Text]], Field(max_length=_MOST)],
    tuple[tuple[float, ...], ...]: Annotated[list[list[Number]], Field(max_length=_MOST)],
}


class Body(BaseModel):
    """Nothing but what is asked for, of exactly the type that is asked for."""

    model_config = ConfigDict(strict=True, extra="forbid")


class LossBody(Body):
    """A loss, exactly as written."""

    epsilon: Exactly | None = Field(None, description=LOSS_HELP["epsilon"])
    delta: Exactly | None = Field(None, description=LOSS_HELP["delta"], examples=["1e-6"])
    rho: Exactly | None = Field(None, description=LOSS_HELP["rho"], examples=["0.02"])

    def loss(self, asker: str) -> Loss:
        return loss_of(asker, epsilon=self.epsilon, delta=self.delta, rho=self.rho)


class Grant(LossBody):
    """More budget for a data set."""

    protects: Unit = Field("record", description="whose loss: see `wallflower budget grant --help`")
    reason: str = Field("", max_length=1000, description="why, for the record")


class Allocation(LossBody):
    """A share of the budget for one analyst."""

    analyst: Text = Field(description="who may spend it: the name of a token", examples=["ana"])
    protects: Unit = Field("record", description="whose loss: see `wallflower budget allocate --help`")


class NewToken(Body):
    """A token to be made."""

    name: Text = Field(description="whose it is; the ledger knows an analyst by it", examples=["ana"])
    scope: Literal["steward", "analyst"] = Field(description="what it may do", examples=["analyst"])
    days: int | None = Field(90, ge=0, le=3650, description="how long it is valid; null: for ever")


class NewDataset(Body):
    """A data set to be registered."""

    name: Text = Field(description="the name its budget hangs on", examples=["ward"])
    source: str | None = Field(
        None, max_length=1000, description="file or folder of Parquet, relative to a root; left out: a stream"
    )
    facts: dict[str, Any] = Field(
        description="its public schema, as `wallflower data` has it", alias="schema", examples=[{"columns": ["age"]}]
    )
    records: list[Text] = Field([], max_length=_MOST, description="records that analysts may name in a question")


class Observations(Body):
    """Observations of a watch, in order."""

    rows: list[list[Number | None] | Number | None] = Field(
        max_length=100_000, description="an entry for each column, null where there is none", examples=[[[0.5], [7]]]
    )
    first: int | None = Field(
        None, ge=1, le=_WHOLE, description="number of the first row, from 1; decided ones are told again, unlooked"
    )


def model(question: Question) -> type[Body]:
    """The body that asks this question."""
    own: dict[str, Any] = {blank.name: _field(blank) for blank in blanks(question)}
    if spends(question):
        own |= {name: (item.annotation, item) for name, item in LossBody.model_fields.items()}
    name = question.__name__
    made: type[Body] = create_model(name, __base__=Body, __doc__=question.question, **own)
    made.model_config["json_schema_extra"] = {"examples": [example(question)]}
    made.model_rebuild(force=True)
    return made


def query_of(question: Question, body: Body) -> Query[Any, Any]:
    """The question that a body asks."""
    hints = {blank.name: blank.hint for blank in blanks(question)}
    given = {name: getattr(body, name) for name in body.model_fields_set}
    return fill(question, {name: _rich(value, hints.get(name)) for name, value in given.items()})


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
