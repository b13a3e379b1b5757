"""A register and the outliers in it that are asked about, by detector."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from wallflower.papers.data.registers import Register
from wallflower.papers.pcor2021.exact import DETECTORS, Outlier, outliers
from wallflower.papers.pcor2021.searches import Ground, Runs, Search, runs

LOSS: Final = "0.2"
SAMPLES: Final = 50
SEED: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Survey:
    """`count` outliers of a register, and `total` releases about them.

    What was found once is not found again: an experiment that two tables share has the same figures in both.
    """

    register: Register
    count: int
    total: int
    _grounds: dict[str, list[Ground]] = field(default_factory=dict)
    _runs: dict[tuple[str, str, str, int], Runs] = field(default_factory=dict)

    def grounds(self, detector: str) -> list[Ground]:
        if detector not in self._grounds:
            asked = outliers(self.register, DETECTORS[detector], self.count, seed=SEED)
            self._grounds[detector] = [Ground(outlier) for outlier in asked]
        return self._grounds[detector]

    def outliers(self, detector: str) -> list[Outlier]:
        return [ground.outlier for ground in self.grounds(detector)]

    def repetitions(self, detector: str) -> int:
        """Releases about each outlier."""
        return -(-self.total // len(self.grounds(detector)))

    def runs(self, search: Search, detector: str = "LOF", *, epsilon: str = LOSS, samples: int = SAMPLES) -> Runs:
        key = search.key, detector, epsilon, samples
        if key not in self._runs:
            repetitions = self.repetitions(detector)
            self._runs[key] = runs(
                search, self.grounds(detector), epsilon=epsilon, samples=samples, repetitions=repetitions
            )
        return self._runs[key]

    @property
    def words(self) -> str:
        return (
            f"{self.register.name}, {self.register.n:,} records in {' × '.join(map(str, self.register.sizes))} values"
        )
