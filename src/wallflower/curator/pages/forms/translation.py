"""From what is typed on a page to what a question takes: own units, listed records, ticked groups, cut columns."""

from __future__ import annotations

import json
from collections.abc import Mapping

from wallflower.curator.pages.forms.faults import FieldFaults
from wallflower.curator.pages.forms.pickers import bits_of, cut, cut_names
from wallflower.curator.pages.forms.scales import OWN, ruler_of, scaled_text
from wallflower.errors import ParameterError
from wallflower.query.forms import Blank, Question, blanks
from wallflower.schema import Schema
from wallflower.schema.columns import join_list, split_list


def translate(question: Question, form: Mapping[str, str], schema: Schema) -> dict[str, str]:
    """The form as the question has its fields; what cannot be translated is refused, field by field."""
    found, faults = dict(form), dict[str, str]()
    for blank in blanks(question):
        try:
            found |= _translate_field(blank, question, found, schema)
        except ParameterError as refusal:
            words = str(refusal)
            faults[blank.name] = words[:1].upper() + words[1:]
    if faults:
        raise FieldFaults(faults)
    return found


def chosen_columns(question: Question, form: Mapping[str, str]) -> list[str]:
    """The columns that a form asks about; none: all of them."""
    listed = [blank.name for blank in blanks(question) if _is_listed(blank)]
    try:
        return [name for field in listed for name in split_list(form.get(field, ""))]
    except ParameterError:
        return []


def _is_listed(blank: Blank) -> bool:
    return blank.names in ("numbers", "measured") and blank.hint == tuple[str, ...]


def _translate_field(blank: Blank, question: Question, form: Mapping[str, str], schema: Schema) -> dict[str, str]:
    """What a field becomes, and with it others."""
    own, text = form.get(f"{blank.name}{OWN}", "").strip(), form.get(blank.name, "").strip()
    if own:
        return {blank.name: scaled_text(own, blank, ruler_of(schema, chosen_columns(question, form)))}
    if blank.names == "record":
        return _record(blank, question, text, form, schema)
    if blank.hint is Schema and schema.columns and not text.startswith("{"):
        return _domain(blank, question, text, form, schema)
    if blank.names == "context" and text:
        stated = next((form.get(one.name, "") for one in blanks(question) if one.hint is Schema), "")
        domain = _schema_of(stated) if stated.startswith("{") else schema
        context = next((form.get(one.name, "") for one in blanks(question) if one.names == "groups"), "")
        return {blank.name: bits_of(text, domain, split_list(context))}
    return {}


def _schema_of(stated: str) -> Schema:
    """A schema that a link carries as it is."""
    try:
        return Schema.from_json(json.loads(stated))
    except (ValueError, RecursionError):
        raise ParameterError("it refers to public values that cannot be read. Start from the form again.") from None


def _record(blank: Blank, question: Question, text: str, form: Mapping[str, str], schema: Schema) -> dict[str, str]:
    """A record that is listed as `column=value` is looked up in that column."""
    column, mark, value = text.partition("=")
    lookup = next((one.name for one in blanks(question) if one.names == "identifiers"), None)
    known = [one.name for one in schema.columns or () if one.identifier]
    if lookup is None or not mark or column not in known or form.get(lookup, "").strip():
        return {}
    return {blank.name: value, lookup: column}


def _domain(blank: Blank, question: Question, text: str, form: Mapping[str, str], schema: Schema) -> dict[str, str]:
    """The public values of the columns that are named: as the schema has them, or cut as the field says."""
    made, context = cut(schema, text), next((one for one in blanks(question) if one.names == "groups"), None)
    ticked = [] if context is None else split_list(form.get(context.name, ""))
    groups = list(dict.fromkeys([*ticked, *cut_names(text)]))
    single = (form.get(one.name, "").strip() for one in blanks(question) if one.names == "numbers" and one.hint is str)
    names = dict.fromkeys([*groups, *filter(None, single)]) or dict.fromkeys(schema.numbers)
    domain = Schema(columns=made.only(list(names)).columns, rows=schema.rows, clip=True).bare()
    own = {} if context is None else {context.name: join_list(groups)}
    return own | {blank.name: json.dumps(domain.to_json(), ensure_ascii=False)}
