"""What is done inside one tile: who has few neighbours at home, who serves whom, who is near records of other tiles.

Every function is a task of `engines`: of the records of a tile, in lexicographic order, and of what is given. Records
are named by their place in that order. Proved in proof.md of `count`, label (T).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wallflower.engines import Floats, Given
from wallflower.neighbours.extension import UNIT, equal_shares, generous, serve_evenly
from wallflower.neighbours.pairs import Index, Ints, Tree, counts, lists, plant, visit


def find_strays(values: Floats, given: Given) -> Given:
    """The records with fewer than k neighbours in their own tile, and where they are."""
    tree = plant(values, _number(given, "reach"))
    stray = np.sort(tree.order[counts(tree, _whole(given, "neighbours")) < _whole(given, "neighbours")])
    return {"place": stray, "point": values[stray]}


def serve_home(values: Floats, given: Given) -> Given:
    """Serve the inliers of the tile from it, and meet the strays in reach: how many inliers, which suppliers are
    crowded by them alone, and for each stray its neighbours here with what these are asked for already."""
    neighbours = _whole(given, "neighbours")
    tree = plant(values, _number(given, "reach"))
    loads, inliers = serve_evenly(tree, neighbours)
    met, found = visit(tree, given["point"], generous(neighbours), _places_in(tree, given["skip"]))
    row, place = _pairs(met, found)
    return {
        "inliers": np.array([inliers]),
        "crowded": np.sort(tree.order[loads > _number(given, "slack") * UNIT]),
        "row": row,
        "place": tree.order[place],
        "load": loads[place],
    }


def find_clients(values: Floats, given: Given) -> Given:
    """The inliers of the tile that ask any of these suppliers of it, and where they are."""
    tree = plant(values, _number(given, "reach"))
    met, found = lists(tree, min(max(tree.n - 1, 0), generous(_whole(given, "neighbours"))))
    asked, share = equal_shares(found, _whole(given, "neighbours"))
    wanted = np.zeros(tree.n, dtype=np.bool_)
    wanted[_places_in(tree, given["suppliers"])] = True
    asks = (wanted[met] & (np.arange(met.shape[1]) < asked[:, None])).any(axis=1) & (share > 0)
    client = np.sort(tree.order[asks])
    return {"place": client, "point": values[client]}


def find_suppliers(values: Floats, given: Given) -> Given:
    """The records near these points, and the `core` of this tile itself: where they are, and what the inliers of this
    tile outside of the core ask of them. Near each point as many as `length` says are found, all if it is `whole`."""
    tree = plant(values, _number(given, "reach"))
    core = _places_in(tree, given["core"])
    loads, _ = serve_evenly(tree, _whole(given, "neighbours"), core)
    wanted = np.zeros(tree.n, dtype=np.bool_)
    wanted[core] = True
    point, skip, length = given["point"], _places_in(tree, given["skip"]), _whole(given, "length")
    whole = given["whole"]
    while len(point):
        met, found = visit(tree, point, length, skip)
        wanted[_pairs(met, found)[1]] = True
        cut = whole & (found == length)
        point, skip, whole, length = point[cut], skip[cut], whole[cut], 4 * length
    place = np.sort(tree.order[wanted])
    back = np.empty(tree.n, dtype=np.int64)
    back[tree.order] = loads
    return {"place": place, "point": values[place], "load": back[place]}


def _places_in(tree: Tree, places: Ints) -> Index:
    """Places of the lexicographic order as places of the tree; those that are below 0 stay so."""
    back = np.empty(tree.n + 1, dtype=np.int32)
    back[tree.order] = np.arange(tree.n)
    back[-1] = -1
    return back[np.maximum(places, -1)]


def _pairs(met: Index, found: Ints) -> tuple[Ints, Ints]:
    """Rows of different length as pairs."""
    row = np.repeat(np.arange(len(found)), found)
    return row, met[np.arange(met.shape[1]) < found[:, None]].astype(np.int64)


def _number(given: Given, name: str) -> float:
    return float(given[name][()])


def _whole(given: Given, name: str) -> int:
    return int(given[name][()])


def pack(**numbers: Any) -> Given:
    """Numbers as they are given to a task."""
    return {name: np.asarray(number) for name, number in numbers.items()}
