"""Draw the pictures of docs/concepts and of the front page as SVG, from formulas and from made-up records.

Each has a ground of its own, so it can be read on a white page and on a black one, and follows the reader's colours
where the browser says them. Run `python scripts/pictures.py`; a test holds docs/images to what it draws.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final
from xml.sax.saxutils import escape

import numpy as np

from wallflower.synthetic import mixture

FOLDER: Final = Path(__file__).parents[1] / "docs" / "images"
STYLE: Final = """\
text { font-family: system-ui, "Segoe UI", "DejaVu Sans", sans-serif; font-size: 15px; fill: #1d2430; }
.small { font-size: 13px; fill: #4d5766; } .strong { font-weight: 700; } .middle { text-anchor: middle; }
.ground { fill: #fbfaf8; } .card { fill: #ffffff; stroke: #c9ced6; } .axis { stroke: #8b94a1; fill: none; }
.dot { fill: #52606f; } .one { fill: #0a5fa8; } .two { fill: #b23a08; } .line-one { stroke: #0a5fa8; fill: none; }
.line-two { stroke: #b23a08; fill: none; } .soft-one { fill: #0a5fa8; fill-opacity: 0.14; }
.soft-two { fill: #b23a08; fill-opacity: 0.14; } .label-one { fill: #0a5fa8; } .label-two { fill: #b23a08; }
@media (prefers-color-scheme: dark) {
  text { fill: #e9ecf1; } .small { fill: #b4bdc9; } .ground { fill: #1b1f26; } .card { fill: #242a33; stroke: #4a5462; }
  .axis { stroke: #7c8794; } .dot { fill: #aab4c0; } .one { fill: #6db7f5; } .two { fill: #f59a6a; }
  .line-one { stroke: #6db7f5; } .line-two { stroke: #f59a6a; } .soft-one { fill: #6db7f5; }
  .soft-two { fill: #f59a6a; } .label-one { fill: #6db7f5; } .label-two { fill: #f59a6a; }
}"""


def main() -> None:
    """Write every picture."""
    FOLDER.mkdir(exist_ok=True)
    for name, draw in PICTURES.items():
        (FOLDER / name).write_text(draw(), encoding="utf-8")
        sys.stdout.write(f"{FOLDER / name}\n")


def page(width: int, height: int, title: str, parts: Iterable[str]) -> str:
    """A picture with its ground and its title, which a screen reader says."""
    opening = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">'
    ground = f'<rect class="ground" width="{width}" height="{height}" rx="12"/>'
    lines = [opening, f"<title>{escape(title)}</title>", f"<style>\n{STYLE}\n</style>", ground, *parts, "</svg>"]
    return "\n".join(lines) + "\n"


def text(x: float, y: float, words: str, kind: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}">{escape(words)}</text>'


def circle(x: float, y: float, radius: float, kind: str, more: str = "") -> str:
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" class="{kind}"{more}/>'


def box(x: float, y: float, width: float, height: float, kind: str, radius: float = 8) -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
    return f'<rect {place} rx="{radius:g}" class="{kind}"/>'


def curve(points: Sequence[tuple[float, float]], kind: str, width: float = 2.5, *, closed: bool = False) -> str:
    path = " ".join(f"{'M' if at == 0 else 'L'}{x:.1f} {y:.1f}" for at, (x, y) in enumerate(points))
    return f'<path d="{path}{" Z" if closed else ""}" class="{kind}" stroke-width="{width:g}"/>'


def arrow(x: float, y: float, length: float, kind: str = "axis") -> str:
    head = [(x + length - 8, y - 5), (x + length, y), (x + length - 8, y + 5)]
    return curve([(x, y), (x + length, y)], kind, 2) + curve(head, kind, 2)


def laplace(at: float, centre: float, scale: float) -> float:
    return math.exp(-abs(at - centre) / scale) / (2 * scale)


def draw_epsilon() -> str:
    """Answers of a count at ε = 0.5 with a record and with another in its place: 4 apart, noise of scale 8."""
    with_it, without, scale = 22.0, 26.0, 8.0
    places = np.linspace(-6, 56, 125)

    def height(at: float, centre: float) -> tuple[float, float]:
        return 60 + (at + 6) * 10, 262 - 2900 * laplace(at, centre, scale)

    ratio = math.exp((without - with_it) / scale)
    marked = 12.0
    parts = [curve([(50, 262), (690, 262)], "axis", 1.5)]
    for centre, name in ((with_it, "one"), (without, "two")):
        line = [height(float(at), centre) for at in places]
        parts += [curve([(60, 262), *line, (680, 262)], f"soft-{name}", 0, closed=True), curve(line, f"line-{name}")]
    parts += [
        *(text(60 + (at + 6) * 10, 282, str(at), "small middle") for at in range(0, 60, 10)),
        text(375, 304, "the answer that is released", "small middle"),
        text(40, 36, "with your record", "label-one strong"),
        text(40, 58, "with any other record in its place", "label-two strong"),
        curve([(height(marked, 0)[0], 262), height(marked, with_it)], "line-one", 1.5),
        circle(*height(marked, with_it), 5, "one"),
        circle(*height(marked, without), 5, "two"),
        text(418, 60, "Every answer is nearly as likely:", "strong"),
        text(418, 82, f"at ε = 0.5, at most {ratio:.2f} times,"),
        text(418, 104, "wherever you look."),
    ]
    return page(720, 320, "Two Laplace curves of answers, with your record and with another: nearly the same", parts)


def draw_outlier() -> str:
    """Made-up records; around three of them the ball of the radius, with the neighbours that are in it."""
    records = mixture(90, 2, seed=12, share=0.06, spread=2.6) * 62 + (250, 165)
    records = records[(records[:, 0] > 24) & (records[:, 0] < 470) & (records[:, 1] > 20) & (records[:, 1] < 308)]
    radius, wanted = 54.0, 5
    apart = np.hypot(*(records[:, None] - records[None]).transpose(2, 0, 1))
    near = (apart <= radius).sum(axis=1) - 1
    lone = [place for place in np.argsort(near).tolist() if near[place] < wanted]
    shown = [lone[0], int(np.argsort(near)[-3])]
    parts = [circle(x, y, 4, "two" if count < wanted else "dot") for (x, y), count in zip(records, near, strict=True)]
    for place, name in zip(shown, ("two", "one"), strict=True):
        x, y = records[place]
        more = ' stroke-width="2" stroke-dasharray="5 4"'
        parts += [
            circle(x, y, radius, f"soft-{name}"),
            circle(x, y, radius, f"line-{name}", more),
            circle(x, y, 6, name),
        ]
    few, many = (int(near[place]) for place in shown)
    parts += [
        text(484, 70, "usual", "label-one strong"),
        text(484, 92, f"{many} others within the radius"),
        text(484, 136, "an outlier", "label-two strong"),
        text(484, 158, f"{few} others within the radius," if few else "nobody else is that near,"),
        text(484, 180, f"fewer than the {wanted} asked for"),
        text(484, 232, f"In this picture {len(lone)} of {len(records)}", "small"),
        text(484, 252, "records are outliers.", "small"),
    ]
    return page(720, 328, "Points in a plane; a circle around a crowded one and around a lonely one", parts)


def draw_scaling() -> str:
    """Ten people, one of whom is replaced: scaled by the table's own spread, and by a public one."""
    ages = [31.0, 36, 38, 41, 44, 47, 52, 58, 63]
    parts = []
    for row, (title, is_public) in enumerate(
        (("scaled by the table itself", False), ("scaled by a public number", True))
    ):
        top = 40 + row * 142
        parts.append(text(40, top, title, f"strong {'label-one' if is_public else 'label-two'}"))
        for line, last in enumerate((66.0, 400.0)):
            people = np.array([*ages, last])
            centre, spread = (45.0, 12.0) if is_public else (people.mean(), people.std())
            y = top + 34 + line * 42
            parts.append(curve([(190, y), (690, y)], "axis", 1))
            parts.append(text(40, y + 5, "before" if line == 0 else "one is replaced", "small"))
            for at, age in enumerate(people):
                x = 330 + 70 * float((age - centre) / spread)
                is_last = at == len(ages)
                if x <= 690:
                    parts.append(circle(x, y, 6, "two" if is_last else "one"))
                else:
                    parts += [text(556, y - 10, "far to the right", "small"), arrow(656, y, 30, "line-two")]
    return page(720, 312, "Ten people on a line; scaled by their own spread, all move when one is replaced", parts)


def draw_noise() -> str:
    """What a count of 30 would be released as, at two losses: 24 answers each at even chances of the noise."""
    parts = [text(40, 38, "the same question, asked 24 times", "strong")]
    chances = (np.arange(24) + 0.5) / 24
    sides = np.sign(chances - 0.5) * -np.log(1 - 2 * np.abs(chances - 0.5))
    for row, (epsilon, name) in enumerate((("0.5", "two"), ("2", "one"))):
        scale = 4 / float(epsilon)
        y = 120 + row * 100
        reach = scale * math.log(20)
        left, right = (240 + 9 * (30 + side * reach - 10) for side in (-1, 1))
        parts += [
            text(40, y - 8, f"ε = {epsilon}", f"strong label-{name}"),
            text(40, y + 14, "more private" if row == 0 else "less private", "small"),
            box(left, y - 26, right - left, 52, f"soft-{name}"),
            curve([(160, y), (690, y)], "axis", 1),
            *(circle(240 + 9 * (30 + scale * float(side) - 10), y, 5, name) for side in sides),
            text(436, y + 46, f"95 % within ±{reach:.0f}", "small"),
        ]
    parts += [curve([(420, 60), (420, 268)], "axis", 2), text(420, 290, "the true count", "small middle")]
    return page(
        720, 308, "Answers scatter around the true count, widely at a small epsilon, closely at a large one", parts
    )


def draw_ledger() -> str:
    """A limit of 2 and four charges, the last of which is refused; and the three steps of every answer."""
    parts = [text(40, 38, "may lose ε = 2 in all", "strong")]
    x = 40.0
    for name, size, kind in (
        ("count", 0.5, "one"),
        ("explain", 0.5, "one"),
        ("count", 0.75, "one"),
        ("left", 0.25, ""),
    ):
        width = 320 * size
        parts.append(box(x, 54, width - 3, 44, f"soft-{kind}" if kind else "card", 5))
        parts += [
            text(x + width / 2 - 1, 74, name, "middle small"),
            text(x + width / 2 - 1, 91, f"{size:g}", "middle small"),
        ]
        x += width
    parts += [text(40, 130, "A question for 0.5 is refused: only 0.25 is left, and nothing is charged.", "label-two")]
    steps = (("1  charge", "written down", "before anybody looks"), ("2  look", "at the records,", "and add noise"))
    steps += (("3  record", "the answer, for ever,", "beside its charge"),)
    for at, (title, *words) in enumerate(steps):
        left = 40 + at * 224
        parts.append(box(left, 158, 192, 88, "card"))
        parts += [
            text(left + 16, 184, title, "strong label-one"),
            *(text(left + 16, 208 + 20 * n, w) for n, w in enumerate(words)),
        ]
        if at < 2:
            parts.append(arrow(left + 197, 202, 22))
    parts += [
        text(40, 278, "A crash after 1 costs budget, and tells nobody anything. Rows are chained by hashes:", "small")
    ]
    parts += [text(40, 297, "one that is changed, removed or slipped in is noticed.", "small")]
    return page(720, 316, "A bar of spent budget, and three steps: charge, look, record", parts)


def draw_home() -> str:
    """From a private table to an answer: what the front page opens with."""
    records = mixture(120, 2, seed=8, share=0.06, spread=2.7) * (34, 34) + (150, 150)
    inside = records[(records[:, 0] > 46) & (records[:, 0] < 254) & (records[:, 1] > 62) & (records[:, 1] < 238)]
    apart = np.hypot(*(inside[:, None] - inside[None]).transpose(2, 0, 1))
    lone = (apart <= 24).sum(axis=1) <= 4
    parts = [box(36, 46, 228, 200, "card"), text(150, 34, "private records", "middle strong")]
    parts += [circle(x, y, 3.4, "two" if is_lone else "dot") for (x, y), is_lone in zip(inside, lone, strict=True)]
    parts += [text(150, 270, "never leave the steward", "middle small"), arrow(276, 146, 44)]
    parts += [box(332, 82, 150, 128, "card"), text(407, 70, "the ledger", "middle strong")]
    for row, (words, kind) in enumerate(
        (("limit      ε = 2", ""), ("charge   ε = 0.5", "label-one"), ("left     ε = 1.5", ""))
    ):
        parts.append(text(348, 116 + 34 * row, words, kind))
    parts += [text(407, 270, "pays before anybody looks", "middle small"), arrow(494, 146, 44)]
    parts += [box(550, 46, 214, 200, "card"), text(657, 34, "the answer", "middle strong")]
    said = ("About 22 of 367", "records are outliers,", "and with 97.5 %", "at most 46.")
    parts += [text(570, 92 + 26 * row, words, "strong" if row == 0 else "") for row, words in enumerate(said)]
    parts += [
        text(570, 212, "ε = 0.5, proved", "label-one"),
        text(657, 270, "noisy on purpose, and says so", "middle small"),
    ]
    return page(800, 292, "Private records on the left, a ledger in the middle, a noisy answer on the right", parts)


PICTURES: Final[dict[str, Callable[[], str]]] = {
    "epsilon.svg": draw_epsilon,
    "outlier.svg": draw_outlier,
    "scaling.svg": draw_scaling,
    "noise.svg": draw_noise,
    "ledger.svg": draw_ledger,
    "home.svg": draw_home,
}

if __name__ == "__main__":
    main()
