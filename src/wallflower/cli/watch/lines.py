"""A question asked of a stream: one decision for each observation, as it comes."""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final

import typer

from wallflower.cli.options import DATA, OUTPUT, READING, facts_of
from wallflower.cli.remote import open_remote
from wallflower.cli.show import notice, say_cap
from wallflower.cli.watch.feeds import open_feed, open_hooks, require_feeds
from wallflower.cli.watch.fleet_lines import decide_fleet, require_fleet
from wallflower.data import Schema
from wallflower.data.lines import STDIN, Oddities, Stream, stream
from wallflower.errors import BudgetExhausted, ParameterError, PrivacyError, SourceError
from wallflower.ledger import Ledger
from wallflower.machine.hooks import Hooks
from wallflower.machine.mqtt import is_address
from wallflower.queries.watch.seasons import SeasonalBaseline
from wallflower.query.parameter import Question
from wallflower.schema.columns import Selection, call_or_refuse, list_names
from wallflower.streams import Decisions, OpenWatch, watching

_ASK: Final[Mapping[str, Any]] = {
    "json_lines": Annotated[
        bool,
        typer.Option(
            "--json-lines",
            help="decide as observations come: CSV, JSON lines or Parquet in, one JSON object a decision out",
            rich_help_panel=OUTPUT,
        ),
    ],
    "fleet": Annotated[
        bool,
        typer.Option(
            "--fleet",
            help="decide for many streams: JSON lines with stream, time and value in, one JSON object a decision out",
            rich_help_panel=OUTPUT,
        ),
    ],
    "checkpoint": Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="keep every decision there before it is told; the same again after a crash; of a fleet a file or a "
            "PostgreSQL URL",
            rich_help_panel=DATA,
        ),
    ],
    "checkpoint_key": Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="seal the secret of the checkpoint with this key, made by `sensors store-key`",
            rich_help_panel=DATA,
        ),
    ],
    "goes_on": Annotated[
        bool,
        typer.Option(
            "--continue",
            help="the source continues where the checkpoint ends [default: for a pipe; a file starts at 1]",
            rich_help_panel=DATA,
        ),
    ],
    "first": Annotated[
        int | None,
        typer.Option(
            "--from",
            min=1,
            metavar="N",
            help="number of the source's first observation; those decided before are answered as stored",
            rich_help_panel=DATA,
        ),
    ],
    "look_ahead": Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=0,
            help="with --fleet: how far ahead a time may be: a date in seconds beyond the clock [default: 86,400], a "
            "whole number beyond the other streams",
            rich_help_panel=DATA,
        ),
    ],
    "message_id": Annotated[
        str | None,
        typer.Option(
            metavar="FIELD",
            help="with mqtt://: the member that identifies a message, so that one that is sent twice is decided once",
            rich_help_panel=DATA,
        ),
    ],
    "on_flag": Annotated[
        str | None,
        typer.Option(
            metavar="COMMAND",
            help="run a command for every flag, with the decision as JSON on its standard input; needs --checkpoint",
            rich_help_panel=OUTPUT,
        ),
    ],
    "webhook": Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="send every flag there, signed with the key in WALLFLOWER_WEBHOOK_SECRET; needs --checkpoint",
            rich_help_panel=OUTPUT,
        ),
    ],
    "renew": Annotated[
        bool,
        typer.Option(
            "--renew",
            help="start and charge a new session if the one in the checkpoint cannot be resumed",
            rich_help_panel=DATA,
        ),
    ],
}
FLAGS: Final = ("json_lines", "fleet", "goes_on", "renew")

_TABLE_ONLY: Final = {
    "as_json": "--json",
    "dry_run": "--dry-run",
    "plot": "--plot",
    "report": "--report",
    "time": "--time",
    **{name: f"--{name}" for name in READING},
}
_STREAM_ONLY: Final = {
    "checkpoint": "--checkpoint",
    "checkpoint_key": "--checkpoint-key",
    "goes_on": "--continue",
    "first": "--from",
    "renew": "--renew",
    "look_ahead": "--look-ahead",
    "message_id": "--message-id",
    "on_flag": "--on-flag",
    "webhook": "--webhook",
}
_BASELINE: Final = {"mean": None, "covariance": None, "centre": "mean", "variance": "covariance"}
_NOUNS: Final = {"watch": "outlier", "shift": "alarm"}  # what a decision is about, by the kind of query
_WORDS: Final = {True: "true", False: "false", None: 'null, "skipped": true'}
_PARSERS: Final[Mapping[str, Callable[[str], Any]]] = {".toml": tomllib.loads, ".json": json.loads}


class QuestionInterruption(PrivacyError):
    """Ctrl-C while a question was being asked; says what became of the budget."""

    exit_code: ClassVar[int] = 130


def ask_options(question: Question) -> Mapping[str, Any]:
    """Return further options, if the query can be asked of a stream."""
    return _ASK if question.accepts_stream else {}


def require_fitting(given: dict[str, Any]) -> None:
    """Refuse options that belong to the other way of asking, before anything is read."""
    require_fleet(given)
    require_feeds(given)
    given["json_lines"] = given["json_lines"] or given["fleet"]
    if not given["json_lines"] and given["source"] == STDIN:
        raise ParameterError(
            "standard input is a stream and has no end that is known. Add --json-lines, or name a file."
        )
    unfit = _TABLE_ONLY if given["json_lines"] else _STREAM_ONLY
    for name, words in unfit.items():
        if given.get(name):
            raise ParameterError(
                f"{words}: does not go {'with' if given['json_lines'] else 'without'} --json-lines, which decides as "
                f"observations come. Leave it out, or {'leave that out' if given['json_lines'] else 'add that'}."
            )
    if given["look_ahead"] is not None and not given["fleet"]:
        raise ParameterError("--look-ahead: bounds the clocks of a fleet. Add --fleet, or omit it.")
    for name, words in (("goes_on", "--continue"), ("first", "--from")):
        if given[name] and given["checkpoint"] is None:
            raise ParameterError(
                f"{words}: goes on from a checkpoint, and none is given. Add --checkpoint FILE, or leave it out."
            )
    if given["goes_on"] and given["first"]:
        raise ParameterError("--continue and --from N exclude each other. Leave one out.")


def decide(query: Any, given: Mapping[str, Any]) -> None:
    """Write one JSON object for each observation of the source, as soon as it is decided."""
    facts = facts_of(given["schema"], query.wants())
    dataset = given["dataset"] or (facts.name if facts else None) or _stem(given["source"])
    if given["fleet"]:
        if fate := decide_fleet(query, given, dataset):
            raise QuestionInterruption(f"Interrupted; {fate}")
        return
    watch: OpenWatch | None = None
    try:
        wanted = Selection(names=query.columns or (facts.default_numbers if facts else ()) or None)
        time = None if query.seasonal_baseline is None else query.seasonal_baseline.time
        with open_feed(given) as feed, Ledger.open(given["ledger"]) as ledger:
            found = stream(given["source"], wanted, time=time) if feed is None else feed.stream(wanted.names, time)
            watch = _open_watch(query, found, facts, ledger, dataset, given)
            with watch, open_hooks(given) as hooks:
                first = _first_number(watch, given) if feed is None else feed.first_number(watch.charge, watch.position)
                _tell_known(hooks, watch, dataset)
                _follow(watch, found, first, partial(_write, hooks=hooks, watch=watch, dataset=dataset))
                if feed is not None:
                    feed.settle(watch.charge, watch.position)
        return
    except KeyboardInterrupt:
        pass
    raise QuestionInterruption(f"Interrupted; {_fate(watch, given['checkpoint'])}")


def fill(given: dict[str, Any]) -> None:
    """Take from the baseline what no option says; an option that says the same in another way wins too.

    One by phase is taken whole, from a file or, by the number of its entry, from the ledger.
    """
    said = given.get("baseline")
    if said is None:
        return
    found = _fetch_baseline(int(said), given) if said.isdigit() else _read_baseline(Path(said))
    stored = found.get("baseline", found)  # a scale with locations has one of its own
    if "season" in stored:
        given["baseline"] = SeasonalBaseline.of(stored)
        return
    given["baseline"] = None
    allowed = {name: rival for name, rival in _BASELINE.items() if name in given}
    said = {name for name in allowed if given[name] is not None}
    for name, value in _require_known(stored, allowed).items():
        if not {name, allowed[name]} & said:
            given[name] = _numbers(name, value)


def _open_watch(
    query: Any, found: Stream, facts: Schema | None, ledger: Ledger, dataset: str, given: Mapping[str, Any]
) -> OpenWatch:
    own = {
        name: given[name] for name in ("analyst", "idempotency_key", "checkpoint", "checkpoint_key", "renew", "force")
    }
    try:
        watch = watching(query, ledger=ledger, dataset=dataset, columns=found.columns, schema=facts, **own)
    except BudgetExhausted:
        say_cap(ledger, dataset)
        raise
    if watch.resumed:
        first = _first_number(watch, given)
        start = (
            f"goes on with observation {first:,} (--from N: it starts with observation N)"
            if first > watch.position
            else f"starts with observation {first:,}, and those decided before are answered as stored (--continue: it "
            "goes on)"
        )
        notice(f"Taken up again after {watch.position:,} decisions; nothing was charged. The source {start}.")
        if watch.skipped_ahead:
            notice(
                f"The next {watch.skipped_ahead:,} observations are skipped: a process that did not end well may "
                "have told its decisions about them."
            )
    else:
        notice(f"{query.cost()} was charged to {dataset} for the whole stream (entry {watch.charge}).")
        say_cap(ledger, dataset)
    return watch


def _first_number(watch: OpenWatch, given: Mapping[str, Any]) -> int:
    """The number of the source's first observation. Lines of a pipe are new unless a number says otherwise: a file can
    be read again from its beginning, a pipe cannot."""
    if given["first"] is not None:
        return int(given["first"])
    return watch.position + 1 if given["goes_on"] or given["source"] == STDIN else 1


def _follow(watch: OpenWatch, found: Stream, following: int, write: Callable[[Decisions], None]) -> None:
    warned = set[str]()
    try:
        for batch in found.batches:
            told = watch.decide_many(batch.rows, first=following, times=batch.times)
            following += len(told)
            write(told)
            _warn_of_oddities(found.oddities, warned)
            if told.exhausted:
                _tell(f'{{"observation": {following}, "{_NOUNS[watch.kind]}": null, "exhausted": true}}\n')
                notice(
                    "The watch is exhausted and looks no further. A new one is paid for; with a checkpoint, by --renew."
                )
                return
    finally:
        _count_oddities(found.oddities)


def _warn_of_oddities(odd: Oddities, warned: set[str]) -> None:
    """Warn the sender of the stream, once for each kind."""
    if odd.unreadable and "unreadable" not in warned:
        warned.add("unreadable")
        notice("An entry holds something that is not a number, such as 4,2 for 4.2. Such entries count as missing.")
    if odd.unknown_names and "names" not in warned:
        warned.add("names")
        notice("A line has names that the first line lacks. Such names are ignored.")


def _count_oddities(odd: Oddities) -> None:
    """Count, on standard error, what was ignored: for the sender of the stream, who holds it, and for nobody else."""
    counts = {
        ("entry that was not a number", "entries that were not numbers"): odd.unreadable,
        ("line with names that the first lacked", "lines with names that the first lacked"): odd.unknown_names,
    }
    if ignored := [f"{count:,} {names[count > 1]}" for names, count in counts.items() if count]:
        notice(f"Ignored: {', '.join(ignored)}.")


def _tell_known(hooks: Hooks | None, watch: OpenWatch, dataset: str) -> None:
    """Hand over the flags that an earlier process stored and perhaps did not: those known to the hooks stay as they
    are."""
    if hooks is not None and watch.position:
        hooks.note(_notices(watch.history(1, watch.position), watch, dataset))


def _notices(told: Decisions, watch: OpenWatch, dataset: str) -> dict[str, dict[str, Any]]:
    """What is said of each flag: what the output says of it, and whose it is."""
    scores = told.noisy_scores or [None] * len(told)
    found = {}
    for number, (flag, score) in enumerate(zip(told.outliers, scores, strict=True), told.first):
        if flag:
            said = {_NOUNS[watch.kind]: True, **_note(watch.kind, score)}
            body = {"dataset": dataset, "charge": watch.charge, "observation": number, **said}
            found[f"{dataset}/{watch.charge}/{number}"] = body
    return found


def _write(told: Decisions, *, hooks: Hooks | None, watch: OpenWatch, dataset: str) -> None:
    if hooks is not None:
        hooks.note(_notices(told, watch, dataset))
    flags = [_WORDS[flag] for flag in told.outliers]
    notes = [_note(watch.kind, score) for score in told.noisy_scores or [None] * len(told)]
    pairs = enumerate(zip(flags, notes, strict=True), told.first)
    noun = _NOUNS[watch.kind]
    _tell("".join(f'{{"observation": {place}, "{noun}": {flag}{_text(note)}}}\n' for place, (flag, note) in pairs))


def _note(kind: str, score: int | None) -> dict[str, Any]:
    """What is said beside a flag: its noisy score, or of an alarm the direction of the shift and where it began."""
    if kind != "shift":
        return {} if score is None else {"score": score}
    return {"direction": "up" if score > 0 else "down", "since": abs(score)} if score else {}


def _text(note: Mapping[str, Any]) -> str:
    return f", {json.dumps(note)[1:-1]}" if note else ""


def _tell(lines: str) -> None:
    sys.stdout.write(lines)
    sys.stdout.flush()


def _fate(watch: OpenWatch | None, checkpoint: str | None) -> str:
    if watch is None:
        return "the ledger shows whatever was charged (wallflower ledger list)."
    told = f"{watch.position:,} observations were decided and stay charged (entry {watch.charge})"
    return f"{told}; the same --checkpoint takes it up again." if checkpoint else f"{told}."


def _stem(source: str) -> str:
    if source == STDIN or is_address(source):
        raise ParameterError(
            "--dataset: standard input and brokers have no name, and the budget is tracked under one. Add --dataset "
            "NAME, or name it in the schema."
        )
    return Path(Path(source).name.removesuffix(".gz")).stem


def _fetch_baseline(charge: int, given: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a baseline of the ledger, or of the service, came to."""
    if given["server"]:
        found = next((made.to_dict() for made in open_remote(given).releases() if made.ledger_id == charge), None)
    else:
        with Ledger.open(given.get("ledger")) as ledger:
            found = ledger.release(charge)
    if found is None or not (found["kind"] == "baseline" or "baseline" in (found["value"] or ())):
        raise ParameterError(
            f"--baseline: entry {charge} released no baseline. It is a file, or the number of an entry of the ledger "
            "that `wallflower baseline` has made, or `wallflower scale --location`. Look for it with "
            "`wallflower ledger list`."
        )
    value: Mapping[str, Any] = found["value"]
    return value


def _read_baseline(path: Path) -> Mapping[str, Any]:
    parse = _PARSERS.get(path.suffix.lower())
    if parse is None:
        raise SourceError(
            f"{path}: a baseline is a file that ends in {list_names(_PARSERS)}. Write it as one of these."
        )
    refusal = SourceError(f"{path}: the baseline cannot be opened, or is not what its name says. Check the file.")
    stored = call_or_refuse(lambda: parse(path.read_text(encoding="utf-8")), lambda _: refusal)
    if isinstance(stored, dict) and isinstance(stored.get("value"), dict):
        stored = stored["value"]  # a release, as `wallflower baseline --json` prints it
    if not isinstance(stored, dict):
        raise ParameterError(f"{path}: a list is not known; a baseline has {list_names(_BASELINE)}. Correct it.")
    known: Mapping[str, Any] = stored
    return known


def _require_known(stored: Mapping[str, Any], allowed: Mapping[str, Any]) -> Mapping[str, Any]:
    unknown = sorted(set(stored) - set(allowed))
    if unknown:
        raise ParameterError(
            f"baseline: {list_names(unknown)} is not known; a baseline has {list_names(allowed)}. Correct it."
        )
    return stored


def _numbers(name: str, value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_numbers(name, item) for item in value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ParameterError(
            f"baseline: its {name} holds something that is no number. Write numbers, or lists of them."
        )
    return float(value)
