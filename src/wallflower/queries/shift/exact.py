"""The CUSUM of a stream, without privacy: what the private one estimates."""

from __future__ import annotations

from collections.abc import Sequence


def exact_cusum(values: Sequence[int], *, drift: int, memory: int | None = None) -> list[int]:
    """Return S_t = max(0, S_(t-1) + x_t - drift) for every t, or with a memory the largest sum of as many last terms.

    >>> exact_cusum([0, 3, 3, 0], drift=1)
    [0, 2, 4, 3]
    >>> exact_cusum([0, 3, 3, 0], drift=1, memory=2)
    [0, 2, 4, 1]
    """
    sums, state = [], 0
    for place, value in enumerate(values):
        if memory is None:
            state = max(0, state + value - drift)
        else:
            state, total = 0, 0
            for earlier in reversed(values[max(0, place + 1 - memory) : place + 1]):
                total += earlier - drift
                state = max(state, total)
        sums.append(state)
    return sums


def exact_alarm(sums: Sequence[int], threshold: int) -> int | None:
    """Return the number of the first S_t that reaches the threshold, from 1; None if none does.

    >>> exact_alarm([0, 2, 4, 3], 4), exact_alarm([0, 1], 4)
    (3, None)
    """
    return next((place for place, value in enumerate(sums, start=1) if value >= threshold), None)
