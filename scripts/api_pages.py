"""Write docs/reference: every public name, from docstrings, signatures and the words that forms show.

A page is made from scripts/reference/PAGE.md: below each heading that names something, what its docstring says is put
in, and then what stands there: an example, which the tests run.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from enum import Enum
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal, get_args, get_origin

import wallflower
import wallflower.sklearn
from wallflower import batch, data, errors, ledger, remote, sensors
from wallflower.dataset import ANYWAY, KEY, Dataset, Planner
from wallflower.queries import COMPANIONS, QUERIES
from wallflower.queries.detector.model import Model
from wallflower.query import accuracy, plan
from wallflower.query.parameter import LOSS_HELP, Parameter, Question, answer_type, group_parameters, spends
from wallflower.release import guarantee

ROOT: Final = Path(__file__).parents[1]
SOURCES: Final = Path(__file__).parent / "reference"
TARGET: Final = ROOT / "docs" / "reference"
QUESTIONS: Final[dict[str, Question]] = {question.kind: question for question in (*QUERIES, *COMPANIONS)}
WRITTEN: Final = "Written by `make docs` from the docstrings; do not edit it by hand.\n"

# Words for what many functions take and mean the same by; a docstring that says more goes before.
SHARED: Final = "<!-- shared parameters -->"  # where their table is put in
MIN_QUESTIONS: Final = 3  # a row that so many questions have is shown once
HEADING: Final = ("| Takes | Type | Default | Means |", "|---|---|---|---|")
COMMON: Final = {
    "X": "records: rows of numbers, a column for each that was fitted",
    "account": "the account that it spends from",
    "analyst": "who asks; default: $WALLFLOWER_ANALYST, the project's, or you",
    "force": "answer even if the plan predicts mostly noise",
    "array": "rows of numbers, one for each record",
    "asked": "what to draw of a detector: `records`, a `record`, or two `columns`",
    "by": "who decides, in the ledger for good",
    "charge": "the number of the charge in the ledger",
    "claim": "what the question states of itself; default: its loss alone",
    "columns": "names of columns",
    "dataset": "the name that the budget is tracked under",
    "body": "the public release that was paid for",
    "declared": "what the schema says of the data set, where nothing was declared before",
    "epsilon": "privacy loss ε, exactly as written: `0.5` or `1/2`",
    "delta": "a chance, as text: `1e-6`",
    "history": "readings of the past that may be public",
    "idempotency_key": "ask again under it and the stored answer comes back, unpaid",
    "later": "the decisions that follow",
    "loss": "a `Loss`",
    "more": "whatever scikit-learn passes on; not used",
    "name": "the name that the budget is tracked under",
    "names": "names of columns",
    "neighbours": "whose change is hidden",
    "path": "the file to write or read",
    "query": "the question with its parameters, such as `wf.Count(...)`",
    "reason": "why, in the ledger for good",
    "records": "rows of numbers, a column for each that was fitted",
    "rho": "zero-concentrated loss, exactly as written",
    "rows": "observations, one after the other",
    "scales": "a number for each column by name",
    "schema": "public facts of the columns, or the file that states them",
    "sent": "what `perturb` made",
    "stream": "which stream it is of",
    "streams": "which stream each is of",
    "stored": "what `to_json` or `to_dict` made",
    "table": "what `to_arrow` made",
    "time": "when it was observed, where the watch goes by times",
    "times": "when each was observed, where the watch goes by times",
    "where": "a path, `sqlite:///FILE`, `postgresql://…`; default: $WALLFLOWER_LEDGER, then your data home",
    "x": "one observation: a number for each column",
    "y": "nothing: here so that pipelines can call it",
}
# Methods that serve other parts of the library; they are public so that plugins can use them.
SERVING: Final = {
    "Ledger": ("reserve", "latest_block", "notice", "record", "release", "budget", "limit"),
    "Account": (
        "obstacle",
        "affords",
        "shut",
        "after",
        "left_for",
        "is_expired",
        "used",
        "free",
        "from_json",
        "to_json",
    ),
    "BatchPlan": ("to_json",),
    "Quote": ("columns", "refusal", "public", "account_after", "protects_after"),
    "Release": ("deliver", "kept"),
    "Declaration": ("of",),
    "Facts": ("of", "to_json"),
    "Guarantee": ("to_json", "from_json", "adjacency", "kind"),
    "Schema": (
        "notes",
        "but_read",
        "rescale",
        "bare",
        "coded",
        "distance_columns",
        "default_numbers",
        "default_distance_columns",
        "columns_set_aside",
    ),
    "Column": ("labels", "width", "origin", "facts", "kind"),
    "Points": ("places", "times", "rescale"),
    "Table": ("require", "points", "rescale", "codes", "coded_points", "coordinates", "cells", "row", "times", "draw"),
    "Loss": ("account", "to_json", "from_json"),
    "Protection": ("to_json", "from_json", "neighbours", "text_but", "unit_noun", "person_change"),
    "OpenWatch": ("detach",),
    "Join": ("to_json", "from_json", "below"),
    "Person": ("to_json", "from_json"),
    "CustomDetector": ("examples",),
    "CustomMarginDetector": ("examples", "margin", "margins", "greatest_margins", "rounding", "caution"),
    "Model": (
        "score",
        "ends",
        "thresholds",
        "parts",
        "split_score",
        "score_column",
        "map_scores",
        "of",
        "from_json",
        "labels",
        "project",
        "require_same_grids",
    ),
    "PerturbedReadings": ("decode_frames", "tag_key", "sizes"),
    "RemoteQuote": ("from_json",),
    "CustomUtility": ("measure", "score_parts", "score_single"),
}
DOORS: Final = (
    "{question} `people.{kind}(...)` answers and pays, `people.plan.{kind}(...)` says what to expect, and "
    "`wf.{name}(...)` is the question by itself."
)
COST: Final = (
    "- **Cost:** the loss that is stated as {forms}, or as `loss`; it depends on nothing else. Where the data set "
    "protects another unit, what it is there is booked ([the ledger](ledger.md))."
)
ABOVE: Final = "see above"
_LATE: Final = ("wallflower.streams", "wallflower.streams.fleet")  # functions of the same names hide these modules
_ROOMS: Final = (
    batch,
    data,
    errors,
    ledger,
    accuracy,
    plan,
    guarantee,
    remote,
    sensors,
    *(sys.modules[name] for name in _LATE),
)
MADE: Final = (
    "CustomDetector",
    "CustomMarginDetector",
    "CustomUtility",
    "Join",
    "Ledger",
    "Loss",
    "Person",
    "PrivateOutlierDetector",
    "Protection",
)  # classes that people make themselves
_PAIR: Final = re.compile(r"^(\*{0,2}\w+) {2,}(\S.*)$")
_FACT: Final = re.compile(r"(Released|Guarantee|Neighbours|Arithmetic|Proof) {2,}")


def main() -> None:
    """Write every page."""
    TARGET.mkdir(exist_ok=True)
    for name, text in pages().items():
        (TARGET / name).write_text(text, encoding="utf-8")


def pages() -> dict[str, str]:
    """Every page of the reference, by its file's name."""
    made = {source.name: page(source.read_text(encoding="utf-8")) for source in sorted(SOURCES.glob("*.md"))}
    return made | {"README.md": made["README.md"].rstrip("\n") + "\n\n" + contents(made)}


def page(source: str) -> str:
    """A page with what the docstrings say put in below each heading that names something."""
    opening, *sections = re.split(r"^## ", source, flags=re.MULTILINE)
    title, _, rest = opening.partition("\n")
    rest = rest.replace(SHARED, "\n".join([*HEADING, *shared_rows().values()])) if SHARED in rest else rest
    parts = [f"{title}\n\n{WRITTEN}{rest.rstrip()}\n"]
    for section in sections:
        name, _, example = section.partition("\n")
        parts.append(f"## {name}\n\n{described(name, example.strip())}")
    return "\n".join(parts)


def described(name: str, example: str) -> str:
    """What a name stands for, then its example, then the methods of a class."""
    if name in QUESTIONS:
        return f"{question_words(QUESTIONS[name])}\n{example}\n"
    found = find(name)
    if found is None:
        return f"{example}\n"
    head = [*class_words(found)] if inspect.isclass(found) else [*function_words(name, found)]
    after = [*method_words(found)] if inspect.isclass(found) else []
    return "\n".join([*head, *([example, ""] if example else []), *after])


def contents(made: dict[str, str]) -> str:
    """A table of all names and where they are."""
    rows = ["| Name | Page | |", "|---|---|---|"]
    for place, text in made.items():
        for name in re.findall(r"^## (\S+)$", text, re.MULTILINE):
            anchor = re.sub(r"[^\w\- ]", "", name.lower())
            found = QUESTIONS.get(name) or find(name)
            rows.append(f"| [`{name}`]({place}#{anchor}) | {place.removesuffix('.md')} | {first_line(name, found)} |")
    return "\n".join([*rows, ""])


def first_line(name: str, found: Any) -> str:
    if name in QUESTIONS:
        return QUESTIONS[name].question
    told = (inspect.getdoc(found) or "").split("\n\n")[0].replace("\n", " ")
    return told.partition(". ")[0].rstrip(".:").replace("|", "\\|") if not inspect.ismodule(found) else ""


def find(name: str) -> Any:
    """What a heading names, or None where it is only a heading."""
    if name == "plan":
        return Planner
    parts = name.removeprefix("wf.").split(".")
    if parts[0] == "sensors" and len(parts) == 2:
        return getattr(sensors, parts[1])
    if parts[0] == "sklearn" and len(parts) == 2:
        return getattr(wallflower.sklearn, parts[1])
    own = {"Dataset": Dataset, "Model": Model}
    rooms = (own.get(parts[0]), *(getattr(room, parts[0], None) for room in (wallflower, *_ROOMS)))
    return next((found for found in rooms if found is not None), None) if len(parts) == 1 else None


# Questions


def question_words(question: Question) -> str:
    """A question: what it releases, under which guarantee, what it costs, and what it takes."""
    room = sys.modules[question.__module__].__doc__ or ""
    told = dict(facts_of(room))
    guarantee_words = f"{told['Guarantee']}; neighbours: {told.get('Neighbours', 'as the ledger says')}"
    lines = [
        DOORS.format(question=question.question, kind=question.kind, name=question.__name__),
        "",
        f"- **Released:** {told['Released']}.",
        f"- **Guarantee:** {guarantee_words}. [Proof]({proof_of(question)}).",
        COST.format(forms=" or ".join(f"`{name}`" for name in forms_of(question))),
        f"- **Returns:** a `Release`; its value is `{hint(answer_type(question))}`.",
        "",
    ]
    rows, shared = question_rows(question), shared_rows()
    if own := [text for text in rows.values() if text not in shared.values()]:
        lines += [*HEADING, *own, ""]
    if common := [f"`{name}`" for name, text in rows.items() if text in shared.values()]:
        lines += [f"Also {', '.join(common)}: the shared parameters above.", ""]
    return "\n".join(lines)


def question_rows(question: Question) -> dict[str, str]:
    """The row of each parameter of a question, by its name."""
    rows = {}
    for mode in group_parameters(question):
        when = "" if mode.when is None else f"*{mode.when.text}*: "
        rows |= {parameter.name: parameter_row(parameter, when) for parameter in mode.parameters}
    if spends(question):
        rows |= {name: row(name, "Exact", loss_default(name, question), LOSS_HELP[name]) for name in forms_of(question)}
    return rows | {
        each.name: row(each.name, hint(each.annotation), constant(each.default), COMMON[each.name])
        for each in (KEY, ANYWAY)
    }


@cache
def shared_rows() -> dict[str, str]:
    """The rows that several questions have, word for word: they stand once, in a table of their own."""
    counts = Counter(item for question in QUESTIONS.values() for item in question_rows(question).items())
    shared: dict[str, str] = {}
    for (name, text), count in counts.most_common():
        if count >= MIN_QUESTIONS:
            shared.setdefault(name, text)
    return shared


def loss_default(name: str, question: Question) -> str:
    """What holds where a part of the loss is left out: without ε there must be a ρ, where the question takes one."""
    if name != "epsilon":
        return "none"
    return "must be given, or `rho`" if "rho" in forms_of(question) else "must be given"


def forms_of(question: Question) -> list[str]:
    """In which words a loss may be stated: those that the guarantee has a theorem for."""
    told = dict(facts_of(sys.modules[question.__module__].__doc__ or ""))["Guarantee"]
    return ["epsilon", *(["delta"] if "(ε, δ)-DP" in told else []), *(["rho"] if "ρ-zCDP" in told else [])]


def facts_of(room: str) -> Iterator[tuple[str, str]]:
    """What a question's front door says under Released, Guarantee and so on."""
    _, *parts = _FACT.split(room.replace("\n\n", "\n"))
    for name, words in zip(parts[::2], parts[1::2], strict=True):
        yield name, " ".join(words.split()).rstrip(".")


def proof_of(question: Question) -> str:
    return f"../../src/wallflower/{question.proof}"


def parameter_row(parameter: Parameter, when: str) -> str:
    choices = f": {', '.join(f'`{choice}`' for choice in parameter.choices)}" if parameter.choices else ""
    default = "must be given" if parameter.default is inspect.Parameter.empty else constant(parameter.default)
    return row(
        parameter.name,
        hint(Fraction if parameter.hint is Fraction else parameter.hint),
        default,
        f"{when}{parameter.help}{choices}",
    )


# Functions and classes


def function_words(name: str, found: Callable[..., Any]) -> Iterator[str]:
    """How a function is called, what its docstring says, and what it takes."""
    yield f"```pyi\n{called(name, found)}\n```\n"
    yield from docstring(found)


def class_words(found: type) -> Iterator[str]:
    """What a class is, how it is made, and its fields."""
    if found.__name__ in MADE:
        yield f"```pyi\n{called(found.__name__, found)}\n```\n"
    yield from docstring(found)
    if is_dataclass(found) and found.__name__ not in MADE:
        yield from field_table(found)


def field_table(found: type) -> Iterator[str]:
    """The fields of a class, and what each means."""
    told = field_meanings(found)
    rows = [row(item.name, hint(item.type), told.get(item.name, "")) for item in public_fields(found)]
    yield "\n".join(["| Field | Type | Means |", "|---|---|---|", *rows, ""])


def field_meanings(found: type) -> dict[str, str]:
    """What each field means: as forms say it, or as the docstring does."""
    helped = {item.name: item.metadata["help"] for item in fields(found) if "help" in item.metadata}
    return helped | dict(pairs(inspect.getdoc(found) or ""))


def public_fields(found: type) -> list[Any]:
    """The fields of a dataclass that are not its own affair."""
    return [item for item in fields(found) if not item.name.startswith("_")]


def method_words(found: type) -> Iterator[str]:
    """The methods and properties of a class, but those that serve other parts."""
    serving = [each for each in SERVING.get(found.__name__, ()) if each in dict(members(found))]
    for each, value in members(found):
        if each in serving:
            continue
        is_property = isinstance(value, property)
        yield f"### {found.__name__}.{each}\n"
        if not is_property:
            yield f"```pyi\n{called(f'{each}', value, bound=True)}\n```\n"
        yield from docstring(value.fget if is_property else value)
    if serving:
        yield f"Serving other parts of the library: {', '.join(f'`{each}`' for each in serving)}.\n"


def members(found: type) -> Iterator[tuple[str, Any]]:
    """The public methods and properties that a class has of its own."""
    for each, value in vars(found).items():
        inner = value.__func__ if isinstance(value, staticmethod | classmethod) else value
        if not each.startswith("_") and (inspect.isfunction(inner) or isinstance(inner, property)):
            yield each, inner


def docstring(found: Any) -> Iterator[str]:
    """The paragraphs of a docstring; examples as they would be typed, and what is taken as a table."""
    text = inspect.getdoc(found) or ""
    for paragraph in re.split(r"\n\n+", text):
        lines = paragraph.splitlines()
        if paragraph.startswith(">>>"):
            yield f"```pycon\n{paragraph}\n```\n"
        elif lines and not any(_PAIR.match(line) for line in lines):
            yield " ".join(line.strip() for line in lines) + "\n"
    yield from table(found, text)


def table(found: Any, text: str) -> Iterator[str]:
    """What is taken, with its type and its default; nothing where the words above say it all."""
    told = dict(pairs(text))
    rows = []
    for each in parameters(found):
        default = "must be given" if each.default is each.empty else constant(each.default)
        words = meaning(each.name, told, text)
        is_rest = each.kind in (each.VAR_KEYWORD, each.VAR_POSITIONAL)
        rows.append((each.name, hint(each.annotation), "nothing" if is_rest else default, words))
    if any(words != ABOVE for *_, words in rows):
        yield "\n".join([*HEADING, *(row(*cells) for cells in rows), ""])


def meaning(name: str, told: dict[str, str], text: str) -> str:
    """What a parameter means, or that the docstring says so in its sentences."""
    return told.get(name) or (ABOVE if f"`{name}`" in text else COMMON.get(name, ""))


def pairs(text: str) -> Iterator[tuple[str, str]]:
    """The lines `name  words` of a docstring; a line that is set in goes on with the one above."""
    name, words = "", ""
    for line in text.splitlines():
        if (got := _PAIR.match(line)) is not None:
            if name:
                yield name, words
            name, words = got.groups()
        elif name and line.startswith("  ") and line.strip():
            words += " " + line.strip()
        elif name:
            yield name, words
            name = ""
    if name:
        yield name, words


def parameters(found: Any) -> list[inspect.Parameter]:
    """What is passed to a function, or to a class that says of each what it means."""
    if inspect.isclass(found) and found.__name__ not in MADE:
        return []
    taken = inspect.signature(found).parameters.values()
    return [each for each in taken if each.name not in ("self", "cls") and not each.name.startswith("_")]


def called(name: str, found: Any, *, bound: bool = False) -> str:
    """How it is written."""
    taken = [each for each in inspect.signature(found).parameters.values() if each.name not in ("self", "cls")]
    marks, stars = [], False
    for each in taken:
        if each.kind is each.KEYWORD_ONLY and not stars:
            marks.append("*")
            stars = True
        stars = stars or each.kind is each.VAR_POSITIONAL
        star = {each.VAR_KEYWORD: "**", each.VAR_POSITIONAL: "*"}.get(each.kind, "")
        default = "" if each.default is each.empty else f"={constant(each.default)}"
        marks.append(f"{star}{each.name}{default}")
    line = f"{'.' if bound else ''}{name}({', '.join(marks)})"
    if len(line) <= 100:
        return line
    return f"{'.' if bound else ''}{name}(\n    " + ",\n    ".join(marks) + ",\n)"


def row(name: str, kind: str, *words: str) -> str:
    cells = (f"`{name}`", f"`{kind}`" if kind else "", *words)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def hint(kind: Any) -> str:
    """A type as it is written."""
    if isinstance(kind, str):
        return kind.replace("wallflower.", "")
    if kind is inspect.Parameter.empty:
        return ""
    if get_origin(kind) is Literal:
        return " | ".join(repr(each) for each in get_args(kind))
    if get_origin(kind) is not None or not inspect.isclass(kind):
        return re.sub(r"(\w+\.)+(?=\w)", "", str(kind)).replace("NoneType", "None")
    return kind.__name__


def constant(value: Any) -> str:
    """A default as it is written."""
    if isinstance(value, Enum):
        return repr(value.value)
    return str(value) if isinstance(value, Fraction) else repr(value)


if __name__ == "__main__":
    main()
