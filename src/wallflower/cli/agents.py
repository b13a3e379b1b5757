"""`wallflower mcp`: let an assistant ask over the Model Context Protocol, and decide what it may ask."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from wallflower.cli.options import DATA, PRIVACY, AnalystOption, JsonOption, LedgerOption, SchemaOption, place_of
from wallflower.cli.serve import ConfigOption
from wallflower.cli.show import notice, show, show_json
from wallflower.cli.steward import Decline
from wallflower.data import Schema
from wallflower.errors import ParameterError
from wallflower.machine.heavy import require_package
from wallflower.machine.lazy import Lazy
from wallflower.names import name_from_file
from wallflower.release import default_analyst

if TYPE_CHECKING:
    import wallflower.service.agent_stdio as _stdio
    import wallflower.service.core.access.tokens as _tokens
    import wallflower.service.core.agents as _agents
    import wallflower.service.core.facade as _facade
    import wallflower.service.demo as _demo
    import wallflower.service.settings as _settings
else:
    _stdio = Lazy("wallflower.service.agent_stdio")
    _tokens = Lazy("wallflower.service.core.access.tokens")
    _agents = Lazy("wallflower.service.core.agents")
    _facade = Lazy("wallflower.service.core.facade")
    _demo = Lazy("wallflower.service.demo")
    _settings = Lazy("wallflower.service.settings")

mcp = typer.Typer()
Id = Annotated[str, typer.Argument(metavar="ID", help="id of the question, as `questions` shows it")]


@mcp.callback(invoke_without_command=True)
def serve(
    context: typer.Context,
    source: Annotated[
        str | None, typer.Option("--data", metavar="FILE", help="a table to ask", rich_help_panel=DATA)
    ] = None,
    schema: SchemaOption = None,
    dataset: Annotated[
        str | None,
        typer.Option("--dataset", metavar="NAME", help="its name [default: file name]", rich_help_panel=DATA),
    ] = None,
    config: ConfigOption = None,
    unconfirmed_epsilon: Annotated[
        str | None,
        typer.Option(
            metavar="EPSILON", help="per day, without a person's confirmation [default: 0]", rich_help_panel=PRIVACY
        ),
    ] = None,
    quota_epsilon: Annotated[
        str | None,
        typer.Option(metavar="EPSILON", help="in all [default: the budget]", rich_help_panel=PRIVACY),
    ] = None,
    ledger: LedgerOption = None,
    analyst: AnalystOption = None,
    demo: Annotated[bool, typer.Option("--demo", help="public data and a ledger for the moment")] = False,
) -> None:
    """Answer an assistant on standard input and output, over the Model Context Protocol.

    Every question waits for you unless a rule allows it: see `wallflower mcp questions` and `confirm`.

    Example: wallflower mcp --data people.csv --schema people.toml
    """
    if context.invoked_subcommand is not None:
        return
    require_package("mcp")
    base = _settings.Settings() if config is None else _settings.Settings.read(config)
    if source is not None:
        place = source if "://" in source else str(Path(source).absolute())
        roots = base.roots if "://" in source else (*base.roots, str(Path(place).parent))
        base = base.override(datasets=(*base.datasets, _register(place, schema, dataset)), roots=roots)
    rule = {"unconfirmed_epsilon": unconfirmed_epsilon, "quota_epsilon": quota_epsilon}
    stated: dict[str, Any] = {name: value for name, value in rule.items() if value is not None}
    if stated and base.agents is not None:
        raise ParameterError("The settings have a rule for agents. Leave out the options, or correct the settings.")
    base = base.override(agents=base.agents or _settings.AgentRule(**stated), ledger=ledger or base.ledger)
    if demo:
        with _demo.trial(base) as trial:
            _stdio.serve_stdio(trial.settings, analyst or default_analyst())
        return
    if not base.datasets:
        raise ParameterError("No data set is named. An assistant asks about tables. Pass --data FILE, or --config.")
    _stdio.serve_stdio(base.override(ledger=base.ledger or place_of(None, dataset)), analyst or default_analyst())


@mcp.command("questions", epilog="Example: wallflower mcp questions")
def list_questions(config: ConfigOption = None, ledger: LedgerOption = None, as_json: JsonOption = False) -> None:
    """Questions of agents: what was asked for whom, what it costs, and whether it waits for you."""
    core = _open_core(config, ledger)
    asked = _agents.Agents(core).all(_caller())
    core.close()
    if as_json:
        show_json({"questions": [question.to_json() for question in asked]})
        return
    for question in asked:
        show(_text_of(question))
    if not asked:
        notice("No agent has asked anything.")


@mcp.command(epilog="Example: wallflower mcp confirm 8bd209384abc1add7deb2614")
def confirm(key: Id, config: ConfigOption = None, ledger: LedgerOption = None) -> None:
    """Confirm a question of an agent, on a terminal. It is charged when the agent fetches its answer."""
    if not sys.stdin.isatty():
        raise ParameterError("A question of an agent is confirmed by a person, on a terminal. Nothing was changed.")
    _decide(key, "confirmed", config, ledger)


@mcp.command(epilog="Example: wallflower mcp decline 8bd209384abc1add7deb2614")
def decline(key: Id, config: ConfigOption = None, ledger: LedgerOption = None) -> None:
    """Decline a question of an agent. It is never charged."""
    _decide(key, "declined", config, ledger)


def _decide(key: str, state: Literal["confirmed", "declined"], config: Path | None, ledger: str | None) -> None:
    core = _open_core(config, ledger)
    agents = _agents.Agents(core)
    question = agents.find(_caller(), key)
    if state == "confirmed":
        show(_text_of(question))
        if not typer.confirm("Spend this?", err=True):
            raise Decline
    show(_text_of(agents.decide(_caller(), key, state)))
    core.close()


def _text_of(question: Any) -> str:
    settings = ", ".join(f"{name} {value!r}" for name, value in question.query.items())
    booked = "" if question.epsilon is None else f", booked as ε = {question.epsilon}"
    return (
        f"{question.id}  {question.state}  {question.agent} asks {question.dataset} for {question.analyst}: "
        f"{question.kind}({settings}), {question.cost}{booked}"
    )


def _caller() -> Any:
    """The person at the command line, who can open the ledger's database anyway."""
    return _tokens.Caller(name=f"{default_analyst()} at the command line", scope="steward", token="")


def _open_core(config: Path | None, ledger: str | None) -> Any:
    settings = _settings.Settings() if config is None else _settings.Settings.read(config)
    place = ledger or settings.ledger or place_of(None, None)
    rule = settings.agents or _settings.AgentRule()
    return _facade.Core(settings.override(ledger=place, agents=rule))


def _register(source: str, schema: str | None, dataset: str | None) -> Any:
    facts = Schema() if schema is None else Schema.read(schema)
    name = dataset or facts.name or name_from_file(Path(source).stem)
    if name is None:
        raise ParameterError("dataset: the file name suggests no name. The budget is tracked under it. Pass --dataset.")
    return _settings.Registration(name=name, source=source, schema=facts, analysts=("*",))
