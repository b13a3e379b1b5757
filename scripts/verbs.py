"""Print src/wallflower/verbs.py: the questions as methods, for editors and type checkers, from the same forms."""

from __future__ import annotations

import inspect
import sys
import textwrap
from collections.abc import Iterable, Iterator
from fractions import Fraction
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from wallflower.dataset import ANYWAY, KEY, KNOWN
from wallflower.privacy import Exact
from wallflower.query import Plan
from wallflower.query.parameter import Question, answer_type, describe, signature
from wallflower.release import Release

WIDTH = 120
OPENING = '''\
"""What a data set can be asked, as methods that editors complete and type checkers read.

Written by `make verbs` from the list of questions; do not edit it by hand. Nothing here runs: the methods that do are
made from the same list in `dataset`, those of plugins too.
"""

from __future__ import annotations

'''


def module(questions: Iterable[Question] = KNOWN) -> str:
    """The whole module."""
    asked = tuple(questions)
    names: dict[str, str] = {}
    answers = [
        method(each, signature(each, KEY, ANYWAY, returns=Release[answer_type(each)]), describe(each), names)
        for each in asked
    ]
    plans = [method(each, signature(each, returns=Plan), f"What to expect of {each.kind}.", names) for each in asked]
    classes = [
        written("Questions", "Each question as a method that answers and pays.", answers),
        written("Plans", "Each question as a method that says what to expect, and spends nothing.", plans),
    ]
    return OPENING + imports(names) + "".join(f"\n\n{part}" for part in classes)


def written(name: str, words: str, methods: list[str]) -> str:
    """A class of these methods."""
    return f'class {name}:\n    """{words}"""\n' + "".join(f"\n{textwrap.indent(part, ' ' * 4)}" for part in methods)


def method(question: Question, taken: inspect.Signature, words: str, names: dict[str, str]) -> str:
    """One method, and in `names` where the types in it come from."""
    lines = [f"def {question.kind}(", "    self,", "    *,"]
    for each in taken.parameters.values():
        default = "" if each.default is each.empty else f" = {constant(each.default, names)}"
        lines += broken(f"    {each.name}: {hint(each.annotation, names)}{default},")
    lines.append(f") -> {hint(taken.return_annotation, names)}:")
    first, *rest = words.splitlines()
    said = [f'"""{first}', *wrapped(rest), '"""'] if rest else [f'"""{first}"""']
    lines += [f"    {line}".rstrip() for line in (*said, "raise NotImplementedError")]
    return "\n".join(lines) + "\n"


def broken(line: str) -> list[str]:
    """A parameter, one choice to a line where it is too long, as the formatter has it."""
    if len(line) + 4 <= WIDTH or "Literal[" not in line:
        return [line]
    head, rest = line.split("Literal[", 1)
    choices, tail = rest.split("]", 1)
    each = [f"        {choice}," for choice in choices.split(", ")]
    ends = ["    ]", f"    {tail.strip()}"] if tail.startswith(" |") else [f"    ]{tail}"]
    return [f"{head}Literal[", *each, *ends]


def wrapped(lines: Iterable[str]) -> Iterator[str]:
    """Lines that fit, each name and its words still in two columns."""
    for line in lines:
        deep = len(line) - len(line.partition("  ")[2].lstrip()) if "  " in line else 0
        yield from textwrap.wrap(line, WIDTH - 8, subsequent_indent=" " * deep) or [""]


def hint(kind: Any, names: dict[str, str]) -> str:
    """A type as it is written."""
    origin, inside = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return union(inside, names)
    if origin is Literal:
        names["Literal"] = "typing"
        return f"Literal[{', '.join(quoted(each) for each in inside)}]"
    if origin is not None:
        return f"{hint(origin, names)}[{', '.join('...' if each is ... else hint(each, names) for each in inside)}]"
    if kind is NoneType:
        return "None"
    if kind.__module__ != "builtins":
        names[kind.__name__] = kind.__module__
    return str(kind.__name__)


def union(inside: tuple[Any, ...], names: dict[str, str]) -> str:
    """The parts of a union; those that say a number exactly go by their one name."""
    parts = list(inside)
    if set(get_args(Exact)) <= set(parts):
        names["Exact"] = "wallflower.privacy"
        return " | ".join(["Exact", *(hint(each, names) for each in parts if each not in get_args(Exact))])
    return " | ".join(hint(each, names) for each in parts)


def constant(value: Any, names: dict[str, str]) -> str:
    """A default as it is written."""
    if isinstance(value, Fraction):
        names["Fraction"] = "fractions"
    return quoted(value) if isinstance(value, str) else repr(value)


def quoted(text: Any) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"' if isinstance(text, str) else repr(text)


def imports(names: dict[str, str]) -> str:
    """Where the names come from: first what Python has, then ours."""
    lines: dict[bool, list[str]] = {False: [], True: []}
    for source in sorted(set(names.values())):
        own = sorted(name for name, place in names.items() if place == source)
        lines[source.startswith("wallflower.")].append(f"from {source} import {', '.join(own)}")
    return "\n\n".join("\n".join(part) for part in lines.values() if part) + "\n"


if __name__ == "__main__":
    sys.stdout.write(module())
