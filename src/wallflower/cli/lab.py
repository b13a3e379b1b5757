"""Try it, attack it, repeat the papers."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from wallflower.cli.options import JsonOption, option, with_signature
from wallflower.cli.show import notice, show, show_json, sign_of_life
from wallflower.errors import ParameterError
from wallflower.machine.lazy import Lazy
from wallflower.papers import ALL, DATA_FOLDER, PAPERS, STUDIES, draw_all
from wallflower.queries import STREAM_ONLY
from wallflower.query.parameter import Question, closest, find

if TYPE_CHECKING:
    import wallflower.demo as _demo
    import wallflower.evidence as _evidence
else:
    _evidence = Lazy("wallflower.evidence")
    _demo = Lazy("wallflower.demo")

QuickOption = Annotated[bool, typer.Option("--quick", help="fewer repetitions")]


def add(app: typer.Typer, questions: Iterable[Question]) -> None:
    """`demo`, `audit`, `reproduce` and `study`."""
    known = tuple(questions)
    app.command(epilog="Example: wallflower demo --out demo", rich_help_panel="Try it")(demo)
    app.command("audit", epilog=f"Example: wallflower audit {known[0].kind}", rich_help_panel="Try it")(
        _audit_command(known)
    )
    app.command(epilog="Example: wallflower reproduce okada2015 --quick", rich_help_panel="Try it")(reproduce)
    app.command(epilog="Example: wallflower study detector --quick", rich_help_panel="Try it")(study)


def demo(
    out: Annotated[Path, typer.Option(metavar="DIR", help="where to leave the files")] = Path("wallflower-demo"),
) -> None:
    """A guided tour on public medical data: plan, ask, be refused, check the ledger, read the report."""
    for number, step in enumerate(_demo.steps(out), start=1):
        show(Text(f"{number}. {step.title}", style="bold cyan"))
        show(Text(step.words, style="italic"))
        show(step.shown)
        show("")


def _audit_command(questions: tuple[Question, ...]) -> Any:
    known = (*(question.kind for question in questions), *STREAM_ONLY)

    def audit(question: str | None, quick: bool, as_json: bool) -> None:
        """Attack a question's mechanisms: sound ones must hold what they claim, broken ones must be caught."""
        chosen = question if question is None or question in STREAM_ONLY else find(question, questions).kind
        findings = []
        for kind in known if chosen is None else (chosen,):
            with sign_of_life(f"attacking {kind}"):
                for finding in _evidence.audits(kind, quick=quick, questions=questions):
                    findings.append(finding)
                    if not as_json:
                        show(_verdict(finding))
        if as_json:
            show_json({"question": chosen, "findings": [_finding_json(finding) for finding in findings]})
        if not all(finding.ok for finding in findings):
            raise typer.Exit(1)

    words = f"which question: {', '.join(known)}; default: all of them"
    which = Annotated[str | None, typer.Argument(metavar="[QUESTION]", help=words)]
    audit_options = (option("question", which), option("quick", QuickOption, False))
    return with_signature(audit, *audit_options, option("as_json", JsonOption, False))


def reproduce(
    paper: Annotated[str, typer.Argument(metavar="PAPER", help=f"{', '.join(PAPERS)}, or all")],
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="where to leave tables and plots")] = None,
    data: Annotated[
        Path | None,
        typer.Option(metavar="DIR", envvar=DATA_FOLDER, help="where the papers' data sets are; default: without them"),
    ] = None,
    quick: QuickOption = False,
) -> None:
    """Draw a paper's figures again, its own curves beside honest ones."""
    if paper not in (*PAPERS, ALL):
        known = f"{', '.join(PAPERS)}, and {ALL!r} for all of them"
        raise ParameterError(f"{paper!r} is not a paper; there are {known}. {closest(paper, (*PAPERS, ALL))}")
    if data is not None:
        os.environ[DATA_FOLDER] = str(data)
    folder = out or Path("wallflower-papers" if paper == ALL else f"wallflower-{paper}")
    folder.mkdir(parents=True, exist_ok=True)
    for path in (draw_all if paper == ALL else PAPERS[paper])(folder, quick, notice):
        show(path)


def study(
    subject: Annotated[str, typer.Argument(metavar="SUBJECT", help=", ".join(STUDIES))],
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="where to leave tables and plots")] = None,
    data: Annotated[
        Path | None,
        typer.Option(metavar="DIR", envvar=DATA_FOLDER, help="where public tables are; default: one is made up"),
    ] = None,
    quick: QuickOption = False,
) -> None:
    """Measure how good an answer is on public tables, beside what others give without privacy."""
    if subject not in STUDIES:
        raise ParameterError(
            f"{subject!r} is not studied; there is {', '.join(STUDIES)}. {closest(subject, tuple(STUDIES))}"
        )
    if data is not None:
        os.environ[DATA_FOLDER] = str(data)
    folder = out or Path(f"wallflower-{subject}")
    folder.mkdir(parents=True, exist_ok=True)
    for path in STUDIES[subject](folder, quick, notice):
        show(path)


_FINDING = ("name", "claimed", "lower", "caught", "expected", "ok", "text")


def _finding_json(finding: Any) -> dict[str, Any]:
    return {name: getattr(finding, name) for name in _FINDING}


def _verdict(finding: Any) -> Text:
    mark, style = ("holds", "green") if finding.ok else ("FAILS", "bold red")
    if finding.ok and finding.caught:
        mark = "caught"
    return Text.assemble((f"{mark:<7}", style), f"{finding.name}: {finding.text}")
