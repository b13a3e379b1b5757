"""Made-up records for figures, tests and benchmarks, and the draws of simulations.

Nothing here protects anybody, so here, and only here, a seed is right. No release draws from here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from wallflower.errors import ParameterError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

WARDS: Final = ("surgery", "heart", "children", "geriatrics")  # of `patients`
METER_FAULTS: Final = (700, 1500, 2204, 3000)  # the hours of `meters` that are out of the ordinary
PAYROLL: Final[Mapping[str, tuple[str, ...]]] = {
    "job": ("clerk", "technician", "engineer", "manager"),
    "site": ("north", "south", "west"),
    "year": ("2024", "2025", "2026"),
}


def synthetic1(seed: int) -> Floats:
    """Synthetic 1 of [Oka15]: 45 records of N(0, I), then 5 of N((20, 20), 100 I), in two columns.

    >>> synthetic1(seed=0).shape
    (50, 2)
    """
    return _two_clouds(45, 5, 2, center=20.0, spread=10.0, seed=seed)


def synthetic2(seed: int) -> Floats:
    """Synthetic 2 of [Oka15]: 490 records of N(0, I) in ten columns, then 10 with N(20, 100) in the first two instead.

    >>> synthetic2(seed=0).shape
    (500, 10)
    """
    center, spread = [20.0] * 2 + [0.0] * 8, [10.0] * 2 + [1.0] * 8
    return _two_clouds(490, 10, 10, center=center, spread=spread, seed=seed)


def mixture(n: int, dimension: int, *, seed: int, share: float = 0.01, spread: float = 3.0) -> Floats:
    """A contaminated Gaussian: records of N(0, I), the last `share` of them of N(0, spread² I) instead.

    >>> mixture(1000, 7, seed=0).shape
    (1000, 7)
    """
    if n < 1 or dimension < 1 or not 0 <= share <= 1 or not spread > 0:
        raise ParameterError(
            f"mixture: n={n}, dimension={dimension}, share={share}, spread={spread} make no table; "
            "n and dimension are 1 or more, share is between 0 and 1, spread above 0."
        )
    few = round(share * n)
    return _two_clouds(n - few, few, dimension, center=0.0, spread=spread, seed=seed)


def salaries(n: int = 51_000, sizes: Sequence[int] = (9, 8, 8), *, seed: int = 1) -> tuple[Ints, Floats, int]:
    """Salaries by job, employer and year: the codes of every record, its salary, and the row of one that stands out.

    Every value of an attribute has its own share of the records and its own effect on the logarithm of the salary; what
    is left is a gamma variable, so that a few are paid far more. About one in 400 is paid more than the one named.

    >>> codes, paid, row = salaries(n=2000)
    >>> codes.shape, int((paid > paid[row]).sum())
    ((2000, 3), 4)
    """
    draw = np.random.default_rng(seed)
    codes = np.stack([draw.choice(size, n, p=draw.dirichlet(np.full(size, 5.0))) for size in sizes], axis=1)
    effects = [draw.normal(0, 0.15, size) for size in sizes]
    centre = 11.6 + sum(effect[column] for effect, column in zip(effects, codes.T, strict=True))
    paid = np.round(np.exp(centre + draw.gamma(1.5, 0.12, n)), 2)
    return codes, paid, int(np.argsort(paid)[-n // 400])


def patients(n: int = 8000, *, seed: int = 1) -> dict[str, NDArray[Any]]:
    """Patients, nobody's: vital signs, days in bed, ward and sex. Pressure rises with age, but for about two in a
    hundred, most of them in the heart ward, whose pressure does not fit their age; the first row is one.

    >>> table = patients(n=1000)
    >>> sorted(table), len(table["age"]), table["ward"][0].item()
    (['age', 'oxygen', 'pressure', 'pulse', 'sex', 'stay', 'ward'], 1000, 'heart')
    """
    draw = np.random.default_rng(seed)
    ward = draw.choice(WARDS, n, p=[0.35, 0.25, 0.15, 0.25])
    ward[0] = "heart"
    age = np.where(ward == "children", draw.uniform(2, 18, n), draw.uniform(18, 95, n))
    odd = (ward != "children") & (draw.random(n) < np.where(ward == "heart", 0.08, 0.01))
    odd[0] = True
    age[odd] = draw.uniform(20, 95, odd.sum())
    usual = 88 + 0.7 * age
    pressure = usual + draw.uniform(-8, 8, n)
    pressure[odd] = (usual + np.where(usual < 128, 1, -1) * draw.uniform(22, 60, n))[odd]
    pulse, oxygen = draw.uniform(58, 98, n), draw.uniform(93, 99.5, n)
    numbers = {"age": age, "pulse": pulse, "pressure": pressure, "oxygen": oxygen, "stay": draw.uniform(1, 15, n)}
    for name, value in (("age", 27.0), ("pressure", 158.0)):
        numbers[name][0] = value
    rounded: dict[str, NDArray[Any]] = {name: np.round(values, 1) for name, values in numbers.items()}
    return rounded | {"ward": ward, "sex": draw.choice(["F", "M"], n)}


def meters(days: int = 140, streams: int = 30, *, seed: int = 1) -> dict[str, NDArray[Any]]:
    """Meters of a town, nobody's, read every hour from 1 January 2026 on: each has a daily rise and fall of its own. In
    the hours METER_FAULTS, counted from 0, all of them are out of it, as far as the stream is that long.

    >>> table = meters(days=2, streams=3)
    >>> table["hour"][25].item(), sorted(table), table["m1"].shape
    ('2026-01-02 01:00', ['hour', 'm1', 'm2', 'm3'], (48,))
    """
    draw, hours = np.random.default_rng(seed), np.arange(24 * days)
    moments = np.datetime64("2026-01-01T00:00") + hours.astype("timedelta64[h]")
    day = np.sin((hours % 24 - 6)[:, None] / 24 * 2 * np.pi + draw.normal(0, 0.3, streams))
    load = draw.uniform(9, 12, streams) + draw.uniform(4, 6, streams) * day + draw.normal(0, 1.5, (len(hours), streams))
    for place, moved in zip(METER_FAULTS, (6, -6, 7, -6), strict=True):
        load[place : place + 1] += moved
    table: dict[str, NDArray[Any]] = {
        "hour": np.char.replace(np.datetime_as_string(moments, unit="m"), "T", " ")  # as readers write it
    }
    return table | {f"m{number + 1}": np.round(load[:, number].clip(0, 30), 2) for number in range(streams)}


def payroll(n: int = 20_000, *, seed: int = 1) -> dict[str, NDArray[Any]]:
    """A payroll, nobody's: job, site, year and salary. The record in row 17 is a clerk paid as a manager is.

    >>> table = payroll(n=100)
    >>> table["job"][17].item(), table["salary"][17].item()
    ('clerk', 190000.0)
    """
    draw = np.random.default_rng(seed)
    jobs = draw.choice(PAYROLL["job"], n, p=[0.3, 0.2, 0.2, 0.3])
    rise = dict(zip(PAYROLL["job"], (10.7, 11.0, 11.2, 12.0), strict=True))
    salary = np.exp(np.array([rise[job] for job in jobs.tolist()]) + draw.normal(0, 0.14, n))
    table: dict[str, NDArray[Any]] = {"job": jobs, "site": draw.choice(PAYROLL["site"], n)}
    table |= {"year": draw.choice(PAYROLL["year"], n), "salary": np.round(salary, -1)}
    for name, value in (("job", "clerk"), ("site", "west"), ("year", "2025"), ("salary", 190_000.0)):
        table[name][17] = value
    return table


def claims(n: int = 20_000, *, seed: int = 1) -> dict[str, NDArray[Any]]:
    """Insurance claims, nobody's: the amount, days since the policy began and days until the claim was made, by region.
    Five in a hundred of those from the coast are made up: large, soon after the policy began, and told late.

    >>> table = claims(n=1000)
    >>> sorted(table), len(table["amount"])
    (['amount', 'begun', 'delay', 'region'], 1000)
    """
    draw = np.random.default_rng(seed)
    region = draw.choice(["coast", "hills", "city"], n)
    begun = draw.uniform(0, 3650, n)
    amount = (600 + 0.9 * begun + draw.gamma(2, 500, n)).clip(0, 20_000)
    delay = draw.gamma(2, 6, n).clip(0, 120)
    odd = (region == "coast") & (draw.random(n) < 0.05)
    for values, low, high in ((amount, 9_000, 20_000), (begun, 0, 90), (delay, 50, 120)):
        values[odd] = draw.uniform(low, high, odd.sum())
    return {"amount": np.round(amount), "begun": np.round(begun), "delay": np.round(delay), "region": region}


def spread_numbers(n: int, *, center: float, spread: float, seed: int, share: float = 0.02) -> Floats:
    """Numbers around a centre, the last `share` of them three times as far from it: a column to rehearse with.

    >>> spread_numbers(100, center=5.0, spread=2.0, seed=0).shape
    (100,)
    """
    return center + spread * mixture(n, 1, seed=seed, share=share)[:, 0]


def pick_labels(n: int, labels: Sequence[str], *, seed: int) -> list[str]:
    """Return N of these labels, each as likely as any other.

    >>> set(pick_labels(50, ["a", "b"], seed=0)) == {"a", "b"}
    True
    """
    places = np.random.default_rng(seed).integers(0, len(labels), n)
    return [labels[place] for place in places.tolist()]


def pick_rows(n: int, count: int, seed: int) -> Ints:
    """Return some of the rows 0 … n-1 in random order, each once.

    >>> sorted(pick_rows(5, 5, seed=0).tolist())
    [0, 1, 2, 3, 4]
    """
    return np.random.default_rng(seed).choice(n, count, replace=False)


def gumbels(shape: tuple[int, ...], seed: int) -> Floats:
    """Standard Gumbel draws, to simulate the exponential mechanism many times over; never for a release.

    >>> gumbels((2, 3), seed=0).shape
    (2, 3)
    """
    return np.random.default_rng(seed).gumbel(size=shape)


def gaussians(shape: tuple[int, ...], seed: int) -> Floats:
    """Draws of N(0, 1), for simulations.

    >>> gaussians((2, 3), seed=0).shape
    (2, 3)
    """
    return np.random.default_rng(seed).normal(size=shape)


def exponentials(shape: tuple[int, ...], seed: int) -> Floats:
    """Standard exponential draws, to simulate permute-and-flip many times over; never for a release.

    >>> exponentials((2, 3), seed=0).shape
    (2, 3)
    """
    return np.random.default_rng(seed).exponential(size=shape)


def push_outliers(
    n: int, separation: float, *, seed: int, share: float = 0.1, spread: float = 3.0
) -> tuple[Floats, Flags]:
    """Readings as in [Boe17] and which of them are outliers: N(0, spread² I) in two columns, the outermost pushed out.

    The `share` of readings that are furthest from the centre move away from it by `separation`, so that a ring of that
    width is empty.

    >>> values, outliers = push_outliers(1000, 50.0, seed=0)
    >>> values.shape, int(outliers.sum())
    ((1000, 2), 100)
    """
    values = np.random.default_rng(seed).normal(0.0, spread, (n, 2))
    lengths = np.hypot(values[:, 0], values[:, 1])
    outliers = np.zeros(n, dtype=np.bool_)
    outliers[np.argsort(lengths)[n - round(share * n) :]] = True
    values[outliers] *= (1 + separation / lengths[outliers])[:, None]
    return values, outliers


def _two_clouds(
    many: int, few: int, dimension: int, *, center: float | Sequence[float], spread: float | Sequence[float], seed: int
) -> Floats:
    draw = np.random.default_rng(seed)
    return np.vstack([draw.normal(0.0, 1.0, (many, dimension)), draw.normal(center, spread, (few, dimension))])
