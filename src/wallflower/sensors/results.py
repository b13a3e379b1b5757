"""What comes of each step: readings that were made up, what left the sensor, what the owner learns."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from wallflower import cards
from wallflower.machine.lazy import Lazy
from wallflower.privacy import Loss
from wallflower.sensors.constants import SENSOR, WINDOW, Columns
from wallflower.sensors.parameters import Parameters
from wallflower.synthetic import Flags, Floats

if TYPE_CHECKING:
    import cryptography.hazmat.primitives.asymmetric.x25519 as _x25519

    import wallflower.sensors.protocol.batches as _batches
    import wallflower.sensors.protocol.findings as _findings
    import wallflower.sensors.protocol.frames as _frames
    import wallflower.sensors.protocol.holdings as _holdings
    import wallflower.sensors.protocol.seals as _seals
else:
    _x25519 = Lazy("cryptography.hazmat.primitives.asymmetric.x25519")
    _batches = Lazy("wallflower.sensors.protocol.batches")
    _findings = Lazy("wallflower.sensors.protocol.findings")
    _frames = Lazy("wallflower.sensors.protocol.frames")
    _holdings = Lazy("wallflower.sensors.protocol.holdings")
    _seals = Lazy("wallflower.sensors.protocol.seals")

NOTE: Final = (
    "All parties ran in this one process and nothing was booked: this is to try out, to teach and to test parameters. "
    "The real thing is `wallflower sensors`."
)
_QUESTION: Final = "Which readings are outliers?"
_SHOWN: Final = 12  # positions; the object has all


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Simulation:
    """Made-up readings.

    readings  one row for each
    outliers  which of them are outliers
    columns   the public constants they were made with, for `perturb`
    """

    readings: Floats = field(repr=False)
    outliers: Flags = field(repr=False)
    columns: Columns


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class PerturbedReadings:
    """What left the sensor. The readings as they were measured are not in it.

    Whoever holds both servers' frames, as this process does, can tell distances from the centre.

    parameters  what was agreed, publicly
    ids         the names of the readings, in the order they were given
    frames      the bytes that each server gets
    """

    parameters: Parameters
    ids: NDArray[np.uint64]
    frames: Mapping[str, tuple[bytes, ...]]
    _commit: bytes
    _owner: _x25519.X25519PrivateKey

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def readings(self) -> Floats:
        """The perturbed readings as the analyst has them, in their own units and in the order they were given."""
        seen = _holdings.list_readings(self.parameters, "analyst", self.decode_frames("analyst"))
        rows = seen.values[np.searchsorted(seen.ids, self.ids)]
        own, grid = self.parameters.columns, float(self.parameters.grid)
        scale, center = ([float(getattr(column, name)) for column in own] for name in ("scale", "center"))
        return np.asarray(rows * grid * scale + center)

    @property
    def loss(self) -> Loss:
        """What each reading cost, for two usual ones: a range apart in every column."""
        return self.parameters.loss

    @property
    def furthest(self) -> Loss:
        """The same for any two readings in the box."""
        usual, furthest = _batches.losses(self.parameters)
        return furthest + self.loss.less(usual)

    @property
    def sizes(self) -> dict[str, int]:
        """How many bytes each server gets."""
        return {role: sum(map(len, bodies)) for role, bodies in self.frames.items()}

    @property
    def guarantee(self) -> str:
        """Who learns what, and what it costs, in words."""
        usual, choice = _batches.losses(self.parameters)[0], getattr(self.parameters.settings, "choice_epsilon", None)
        chosen = "" if choice is None else f", of which ε={choice} pays for the choice of a threshold"
        learns = zip(("analyst", "correction server", "owner"), self._learns, strict=True)
        return (
            f"Metric differential privacy at {self.loss} a reading{chosen}: what the analyst gets stays at most e^ε "
            f"times as likely when a reading moves, with {usual} for as far as usual readings are apart and at most "
            f"ε={_up(self.furthest.amount)} in all within the box. Readings of a sensor add up. "
            + "".join(f"The {who} learns: {what}. " for who, what in learns)
            + "Both servers together: every distance from the centre."
        )

    @property
    def _learns(self) -> tuple[str, str, str]:
        return _findings.LEARNS[self.parameters.settings.mode]

    def __repr__(self) -> str:
        return (
            f"PerturbedReadings({len(self):,} readings of {', '.join(self.parameters.names)}; mode "
            f"{self.parameters.settings.mode}, {self.loss} a reading)"
        )

    def decode_frames(self, role: str) -> Iterator[_frames.Frame]:
        return (_frames.decode(body, parameters=self.parameters.hash) for body in self.frames[role])

    def tag_key(self, _: int) -> bytes | None:
        """The secret of the sensor's tags, which only the owner can read."""
        letter = _batches.Commit.from_bytes(_frames.decode(self._commit, parameters=self.parameters.hash).rest).letter
        bound = _batches.about_commit(self.parameters, SENSOR, WINDOW)
        return _seals.unseal(self._owner, letter, bound) if letter else None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Judgement:
    """What the owner learns: which readings are outliers.

    flags      whether each reading is one, in the order readings were given
    positions  which ones are, counted from 0
    ids        their names
    unjudged   which readings could not be judged
    judged     how many could
    threshold  from which distance on a reading is an outlier, in scaled units
    mode       how the servers judge
    loss       the loss of one reading
    guarantee  who learns what, in words
    note       what to keep in mind
    """

    flags: Flags
    positions: tuple[int, ...]
    ids: tuple[str, ...]
    unjudged: tuple[int, ...]
    judged: int
    threshold: str | None
    mode: str
    loss: Loss
    guarantee: str
    note: str = NOTE

    @property
    def count(self) -> int:
        """How many outliers there are."""
        return len(self.positions)

    @property
    def words(self) -> str:
        """What was found, in a sentence."""
        told = None if self.threshold is None else _number(Fraction(self.threshold))
        place = "" if told is None else f": {told} scaled units or more from the centre"
        left = f" {len(self.unjudged):,} could not be judged." if self.unjudged else ""
        return f"{self.count:,} of {self.judged:,} readings are outliers{place}.{left}"

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values, exact where it matters."""
        said = {name: getattr(self, name) for name in ("mode", "judged", "threshold", "guarantee", "note", "words")}
        lists = {name: list(getattr(self, name)) for name in ("positions", "ids", "unjudged")}
        return {"count": self.count, **lists, **said, "loss": self.loss.to_json()}

    def __repr__(self) -> str:
        return f"Judgement({self.count:,} outliers of {self.judged:,} readings, {self.loss} a reading)"

    def __str__(self) -> str:
        rows = (f"  {name:<9}  {text}" for name, text in self._rows())
        return "\n".join([_QUESTION, *rows])

    def _repr_html_(self) -> str:
        answer = f'<p class="answer"><strong>{self.count:,}</strong> <span>of {self.judged:,} readings</span></p>'
        rows = [(name[:1].upper() + name[1:], text) for name, text in self._rows()]
        return cards.frame("release", f'<p class="question">{_QUESTION}</p>{answer}{cards.tell(rows)}')

    def _rows(self) -> list[tuple[str, str]]:
        shown = ", ".join(map(str, self.positions[:_SHOWN])) or "none"
        more = f" and {self.count - _SHOWN:,} more" if self.count > _SHOWN else ""
        return [
            ("answer", self.words),
            ("positions", shown + more),
            ("loss", f"{self.loss} a reading"),
            ("guarantee", self.guarantee),
            ("note", self.note),
        ]


def _up(amount: Fraction) -> str:
    """Rounded up to two digits after the point, as text.

    >>> _up(Fraction(2, 3))
    '0.67'
    """
    return str(Decimal(math.ceil(amount * 100)) / 100)


def _number(amount: Fraction) -> str:
    """With a point where that is exact.

    >>> _number(Fraction(284, 25)), _number(Fraction(1, 3))
    ('11.36', '1/3')
    """
    told = Decimal(amount.numerator) / amount.denominator
    return str(told) if Fraction(told) == amount else str(amount)
