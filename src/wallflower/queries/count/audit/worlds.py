"""Made-up tables on which one record does the most, and tiny worlds in which every table is tried."""

from __future__ import annotations

import math
from typing import Final

from wallflower.audit import World

FAR: Final = 1000.0

# Neighbouring tables that one record tells apart as far as it can; some sure outliers and a sure cluster keep the
# counts away from 0 and N, where clamping would hide the difference.
_APART, _TOGETHER = (FAR, 2 * FAR), (4 * FAR,) * 4
LINE: Final = [-1.0, -1.0, -1.0, 1.0, 1.0, 1.0, *_APART, *_TOGETHER]  # 0 carries them all: 2k+1 at k=3
STAR: Final = [-1.0, 1.0, *_APART, *_TOGETHER[:2]]  # E moves by slack + 1 at k=1
PENTAGON: Final = [(0.999 * math.cos(0.4 * math.pi * i), 0.999 * math.sin(0.4 * math.pi * i)) for i in range(5)]
DISC: Final = [*PENTAGON, *((x, 0.0) for x in (*_APART, *_TOGETHER[:2]))]  # (0, 0) carries them all: 5k+1 at k=1
CROWD: Final = [0.0] * 8  # duplicates, who ignore each other when self-exclusion goes by value

# Places where rounding favours the attacker: six records within reach of a seventh and, to the last digit, of no
# other; four records on one circle that a sweep by angles sees together only from the last of them.
HEXAGON: Final = [
    *[(0.900707975474482, 0.5884240744118252), (-0.5025163864955259, 0.7643825637604899)] * 5,
    *[(-1.356513089268007, -0.3628661362404154), (-0.8072854300704801, -1.666073325589985)] * 5,
    *[(0.5959389318995277, -1.8420318149386499), (1.449935634672009, -0.7147831149377445)] * 5,
    *[(FAR * i, 0.0) for i in range(1, 9)],
    *[(-FAR, 0.0)] * 8,
]
CIRCLE: Final = World(
    (
        (2.6392087301811333, -0.17250185753609004),
        (1.254983351895187, 0.6094291294493848),
        (-0.033679449989123755, -0.6430804714512026),
        (2.4976306472479544, -1.6558252126919273),
        (FAR, FAR),
    ),
    5,
)

# Worlds, with the radius in plain Euclid
PATH: Final = World(tuple((float(x),) for x in range(7)), 4)
SMALL_PLUS: Final = World(((0.0, 0.0), (1.0, 0.0), (-1.0, 0.0), (0.0, 1.0), (0.0, -1.0)), 5)
PLUS: Final = World(((0.0, 0.0), (2.0, 0.0), (-2.0, 0.0), (0.0, 2.0), (0.0, -2.0), (9.0, 9.0)), 5)
DIAMOND: Final = World(((1.0, 2.0), (0.0, 2.0), (1.0, 1.0), (1.0, 3.0), (2.0, 2.0), (0.0, 0.0)), 5)
ROW: Final = World(((0.0, 0.0), (3.0, 0.0), (6.0, 0.0), (9.0, 0.0), (20.0, 0.0)), 7)
