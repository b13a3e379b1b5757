"""Check that `make proofs` refuses false statements, broken definitions and proofs that are taken on trust.

    python3 proofs/mutants.py             # all of them, on one core
    python3 proofs/mutants.py --only 7    # one of them
    python3 proofs/mutants.py --list      # names and reasons, without Coq

A mutant is one change to a theory, to `labels.txt` or to `statements.txt`. It is applied to a temporary copy of
`proofs/`, in which the changed theory and those that depend on it are compiled again. A mutant that is refused by the
build must fail inside a proof: a syntax error would show nothing. Where `pinned` is set, `statements.txt` changes with
the statement, so that only the proof can refuse it. Needs Coq and Python's standard library. Exit code 0: each mutant
was refused, by the step that it names.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from contextlib import redirect_stdout
from importlib.util import module_from_spec, spec_from_file_location
from io import StringIO
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
COMPILE_TIMEOUT_SECONDS = 600


class Mutant(NamedTuple):
    """One change, and the step of `make proofs` that must refuse it."""

    file: str
    old: str
    new: str
    reason: str  # why the mutant is false, or what it hides
    refused_by: str = "build"  # build | statements | axioms | labels
    refuter: str = ""  # a lemma of the theories that contradicts the mutant
    pinned: tuple[str, str] | None = None  # the same change to statements.txt


EXTENSION = [
    Mutant(
        "Extension.v",
        "allowed X' b & value a - (L + 1) <= value b",
        "allowed X' b & value a - L <= value b",
        "(E) with sensitivity L: the centre of a star loses its own unit too",
        refuter="Extension.E_sharp",
        pinned=("(((Extension.value a) - (L + 1)) <=", "(((Extension.value a) - L) <="),
    ),
    Mutant(
        "Extension.v",
        "`|E - E'| <= L + 1.",
        "`|E - E'| <= L.",
        "(E) for maxima with sensitivity L",
        refuter="Extension.E_sharp",
        pinned=("`|E - E'| <= (L + 1)", "`|E - E'| <= L"),
    ),
    Mutant(
        "Extension.v",
        "cap_ge0 : forall j, j \\in A -> 0 <= cap a j;",
        "cap_ge0 : forall j, j \\in A -> cap a j <= cap a j;",
        "mu may be negative: isolated records are worth 1 each",
        refuter="Extension.cap_ge0_is_needed",
    ),
    Mutant(
        "Extension.v",
        "feasible (A :\\ v) e b & worth A a - (L + 1) <= worth (A :\\ v) b.",
        "feasible (A :\\ v) e b & worth A a - L <= worth (A :\\ v) b.",
        "removing a record loses L: its own unit forgotten",
        refuter="Extension.E_sharp",
    ),
    Mutant(
        "Extension.v",
        "    got a j + (k%:R - 1) * cap a j <= \\sum_(i | edge A e i j) flow a i j;",
        "    got a j + (k%:R - 2) * cap a j <= \\sum_(i | edge A e i j) flow a i j;",
        "demand for k - 1 neighbours: a record with k - 1 of them is served, so E > I",
    ),
    Mutant(
        "Extension.v",
        "#|[pred j in A | (k <= degree A e j)%N]|.",
        "#|[pred j in A | (k < degree A e j)%N]|.",
        "inliers need k + 1 neighbours: a star with k = 1 is worth its leaves, and they have one neighbour",
        refuter="Extension.star_allowed",
    ),
    Mutant(
        "Extension.v",
        "is_max star 1 L before (L + 1) & is_max",
        "is_max star 1 L before L & is_max",
        "the star is worth L + 1: one for each of its records",
        refuter="Extension.star_allowed",
        pinned=("(Extension.before (m:=m)) (((m.+1)%:R) + 1)", "(Extension.before (m:=m)) ((m.+1)%:R)"),
    ),
]

DUALITY = [
    Mutant(
        "Duality.v",
        "  L * (\\sum_(i in A) p i) +",
        "  (\\sum_(i in A) p i) +",
        "prices without the factor L: the bound is below E where L > 1",
    ),
    Mutant(
        "Duality.v",
        "feasible k L A e a -> worth A a <= dual_bound p c.",
        "feasible k L A e a -> dual_bound p c <= worth A a.",
        "duality reversed: zeros are worth less than any positive bound",
        refuter="Extension.nothing_feasible",
        pinned=(
            "(Extension.worth A a) <= (Duality.dual_bound (R:=R) (I:=I) k L A e p c)",
            "(Duality.dual_bound (R:=R) (I:=I) k L A e p c) <= (Extension.worth A a)",
        ),
    ),
    Mutant(
        "Duality.v",
        "[forall (i | i \\in A), 0 <= p i] &&",
        "[forall (i | i \\in A), -1 <= p i] &&",
        "the checker accepts negative prices: isolated records would have E < 0",
    ),
    Mutant(
        "Duality.v",
        "[forall (i | i \\in A), \\sum_(j | edge i j) flow a i j <= L]].",
        "[forall (i | i \\in A), \\sum_(j | edge i j) flow a i j <= L + 1]].",
        "the checker accepts an allocation whose suppliers give L + 1, which is not feasible",
    ),
    Mutant(
        "Duality.v",
        "[&& [forall (j | j \\in A), 0 <= got a j <= 1],",
        "[&& [forall (j | j \\in A), 0 <= got a j],",
        "the checker accepts an allocation that serves a record twice",
    ),
    Mutant(
        "Duality.v",
        "Num.max 0 (c - p i) <= (k%:R - 1) * c).",
        "Num.max 0 (c - p i) <= k%:R * c).",
        "k free suppliers afford any cost: prices of 0 would prove E = 0",
    ),
    Mutant(
        "Duality.v",
        "feasible k L A e b -> worth A b <= worth A a + gap.",
        "feasible k L A e b -> worth A b <= worth A a.",
        "the gap forgotten: zeros with a large gap are accepted and not the best",
        pinned=(
            "(Extension.worth A b) <= ((Extension.worth A a) + gap)",
            "(Extension.worth A b) <= (Extension.worth A a)",
        ),
    ),
    Mutant(
        "Duality.v",
        "dual_bound p c - worth A a <= gap].",
        "worth A a - dual_bound p c <= gap].",
        "the checker compares the wrong way round and accepts every gap >= 0",
        refuter="Duality.C2_weak_duality",
    ),
    Mutant(
        "Duality.v",
        "(forall j, j \\in A -> (k <= degree A e j)%N -> got a j = 1) ->",
        "(forall j, j \\in A -> (k < degree A e j)%N -> got a j = 1) ->",
        "inliers with exactly k neighbours need not be served: zeros for two records that are near, k = 1",
        pinned=(
            "((k <= (Extension.degree (I:=I) A e j))%N) -> (Extension.got a j) = 1",
            "((k < (Extension.degree (I:=I) A e j))%N) -> (Extension.got a j) = 1",
        ),
    ),
]

FLOOR = [
    Mutant(
        "Floor.v",
        "(missing A j)%:R^-1 <= D - 1) ->",
        "(missing A j)%:R^-1 <= D) ->",
        "a clique of weight D is too heavy for all ones",
        pinned=("k e A j)%:R)^-1) <= (D - 1)) ->", "k e A j)%:R)^-1) <= D) ->"),
    ),
    Mutant(
        "Floor.v",
        "lam j / (missing A j)%:R <= D - 1 }.",
        "lam j / (missing A j)%:R <= D }.",
        "cliques weigh D: a record put among them changes the bound by D + 1",
    ),
    Mutant(
        "Floor.v",
        "floor_value X lam - D <= floor_value X' lam'.",
        "floor_value X lam - (D - 1) <= floor_value X' lam'.",
        "(Q2) with sensitivity D - 1: an outlier that moves among D - 1 others, k = 1, lowers the bound from D to 0",
        pinned=(
            "(((Floor.floor_value (R:=R) (I:=I) near k X lam) - D) <=",
            "(((Floor.floor_value (R:=R) (I:=I) near k X lam) - (D - 1)) <=",
        ),
    ),
    Mutant(
        "Floor.v",
        "near_joined : forall a b v, near v a -> near v b -> joined a b.",
        "near_joined : forall a b v, near a b -> near v b -> joined a b.",
        "joined at R instead of 2 R: two outliers near one record need not be near each other",
    ),
    Mutant(
        "Floor.v",
        "Definition out A := [set j in A | (degree A e j < k)%N].",
        "Definition out A := [set j in A | (degree A e j <= k)%N].",
        "records with k neighbours as outliers: they miss none, and 1/0 weighs nothing",
    ),
    Mutant(
        "Floor.v",
        "floor_of A lam - 1 <= floor_of (A :\\ v) lam'.",
        "floor_of A lam <= floor_of (A :\\ v) lam'.",
        "removing an outlier loses nothing: false for a table of one record",
    ),
]

PAIRING = [
    Mutant(
        "Pairing.v",
        "(mu_even : forall s c : {perm I}, mu (c * s)%g = mu c).",
        "(mu_even : forall c : {perm I}, mu (c * 1)%g = mu c).",
        "an order that is not drawn evenly: a fixed order hides no order",
        pinned=(
            "(forall s c : {perm I}, (mu (c * s)%g) = (mu c)) ->",
            "(forall c : {perm I}, (mu (c * 1)%g) = (mu c)) ->",
        ),
    ),
    Mutant(
        "Pairing.v",
        "(mu_even : forall s c, mu (rename s c) = mu c).",
        "(mu_even : forall c, mu (rename 1%g c) = mu c).",
        "an uneven pairing: a fixed pairing hides no order",
        pinned=(
            "(forall (s : {perm I}) (c : C), (mu (rename s c)) = (mu c)) ->",
            "(forall c : C, (mu (rename 1%g c)) = (mu c)) ->",
        ),
    ),
    Mutant(
        "Pairing.v",
        "(forall c, mu' (f c) = mu c) ->",
        "(forall c, mu' (f c) <= mu c) ->",
        "the second coin may be lighter: all weights 0 on the right side",
        pinned=("(forall c : C, (mu' (f c)) = (mu c)) ->", "(forall c : C, (mu' (f c)) <= (mu c)) ->"),
    ),
    Mutant(
        "Pairing.v",
        "bijective f -> (forall c, 0 <= mu c) ->",
        "bijective f -> (forall c, -1 <= mu c) ->",
        "negative weights turn the inequality round",
        pinned=(
            "(bijective f) ->\n       (forall c : C, 0 <= (mu c)) ->",
            "(bijective f) ->\n       (forall c : C, (-1) <= (mu c)) ->",
        ),
    ),
]

FILTERS = [
    Mutant(
        "Filter.v",
        "if (e <= eps) && (d <= del) then",
        "if (e <= eps) then",
        "delta is not limited: one question with delta = 1 tells everything",
    ),
    Mutant(
        "Filter.v",
        "if (e <= eps) && (d <= del) then",
        "if (e <= eps + 1) && (d <= del) then",
        "the filter accepts beyond the limit: one question at eps + 1",
    ),
    Mutant(
        "Filter.v",
        "chance true eps del t S <= expo eps * chance false eps del t S + del.",
        "chance true eps del t S <= expo eps * chance false eps del t S.",
        "(F1) without delta: a question may tell everything with chance delta",
        pinned=(
            "(Filter.chance true eps del t S) <= (((expo eps) * (Filter.chance false eps del t S)) + del)",
            "(Filter.chance true eps del t S) <= ((expo eps) * (Filter.chance false eps del t S))",
        ),
    ),
    Mutant(
        "Filter.v",
        "is_law q, within e d p q &",
        "is_law q, within e (d + d) p q &",
        "questions are charged half their delta",
    ),
    Mutant(
        "Filter.v",
        "is_law q, within e d p q &",
        "is_law q, within (e + e) d p q &",
        "questions are charged half their eps",
    ),
    Mutant(
        "Filter.v",
        "P 0%N S <= expo (e *+ k) * P k S +",
        "P 0%N S <= expo e * P k S +",
        "(U1) with eps for a group of any size: k steps multiply by e^eps each",
    ),
    Mutant(
        "Filter.v",
        "honest t -> (forall w, S w -> covered w) ->",
        "honest t -> (forall w, S w -> true) ->",
        "transcripts that name the record are covered: claims say nothing of them",
    ),
    Mutant(
        "Countable.v",
        "chance true eps del t S <= expR eps * chance false eps del t S + del.",
        "chance true eps del t S <= expR eps * chance false eps del t S.",
        "(F1) without delta, for answers of any kind",
        pinned=(
            "(Countable.chance true eps del t S) <= (((expR eps) * (Countable.chance false eps del t S)) + del)",
            "(Countable.chance true eps del t S) <= ((expR eps) * (Countable.chance false eps del t S))",
        ),
    ),
    Mutant(
        "Countable.v",
        "if (e <= eps) && (d <= del) then",
        "if (e <= 2 * eps) && (d <= del) then",
        "the filter accepts up to twice the limit",
    ),
    Mutant(
        "Countable.v",
        "(forall a, good a -> p a <= expR e * q a) -> within e 0 p q.",
        "(forall a, good a -> p a <= expR e * q a) -> within 0 0 p q.",
        "a ratio of e^e is stated as loss 0",
        pinned=(
            "Countable.within (R:=R) (O:=O) good e 0 p q\nEither",
            "Countable.within (R:=R) (O:=O) good 0 0 p q\nEither",
        ),
    ),
    Mutant(
        "Sums.v",
        "/\\ \\esum_(a in [set: O]) (p a)%:E = 1%:E.",
        "/\\ \\esum_(a in [set: O]) (p a)%:E = 2%:R%:E.",
        "laws with mass 2: their chances do not add up to 1",
    ),
    Mutant(
        "Sums.v",
        "(\\esum_(a in [set: O]) (f a)%:E < +oo)%E.",
        "(\\esum_(a in [set: O]) (f a)%:E <= +oo)%E.",
        "sums that diverge: as a real number such a sum is 0",
    ),
]

EITHER = [
    Mutant(
        "Either.v",
        "(either && (se <= eps)) || (sr <= rho).",
        "(either && (se <= eps)) || (sr <= 2 * rho).",
        "the filter accepts up to twice the limit of rho",
    ),
    Mutant(
        "Either.v",
        "&& (sd + d <= del) then",
        "&& (d <= del) then",
        "the limit of delta is compared with one question, not with the sum",
    ),
    Mutant(
        "Either.v",
        "Definition convert := kappa a * expR ((a - 1) * (a * rho - eps)).",
        "Definition convert := kappa a * expR ((a - 1) * (rho - eps)).",
        "the conversion with rho for a rho, the loss of order a",
    ),
    Mutant(
        "Either.v",
        "Definition kappa := expR (- ln a + (a - 1) * ln (1 - a^-1)).",
        "Definition kappa := expR (- (ln a + ln a) + (a - 1) * ln (1 - a^-1)).",
        "kappa divided by a: at w = 1 - 1/a the true one is reached",
    ),
    Mutant(
        "Either.v",
        "total (fun x => mom a (p0 x) (q0 x)) <= expR (a * (a - 1) * r)].",
        "total (fun x => mom a (p0 x) (q0 x)) <= expR (a * a * r)].",
        "claims may have larger moments than those of r-zCDP",
    ),
    Mutant(
        "Either.v",
        "expR eps * chance false eps del rho false 0 0 0 t S + (del + convert a eps rho).",
        "expR eps * chance false eps del rho false 0 0 0 t S + convert a eps rho.",
        "(F2) without the deltas of questions: as eps grows the conversion tends to 0, and they stay",
        pinned=(
            "(Either.chance false eps del rho false 0 0 0 t S)) +\n        (del + (Either.convert (R:=R) a eps rho)))",
            "(Either.chance false eps del rho false 0 0 0 t S)) +\n        (Either.convert (R:=R) a eps rho))",
        ),
    ),
    Mutant(
        "Either.v",
        "expR eps * chance true eps del rho false 0 0 0 t S + (del + convert a eps rho).",
        "expR eps * chance true eps del rho false 0 0 0 t S + del.",
        "(F3) with a conversion that costs nothing: rho alone bounds no ratio",
        pinned=(
            "(Either.chance true eps del rho false 0 0 0 t S)) +\n        (del + (Either.convert (R:=R) a eps rho)))",
            "(Either.chance true eps del rho false 0 0 0 t S)) +\n        del)",
        ),
    ),
]

NOISE = [
    Mutant(
        "Noise.v",
        "laplace (y - f) <= p^-1 ^+ D * laplace (y - f').",
        "laplace (y - f) <= p^-1 ^+ D.-1 * laplace (y - f').",
        "(L) with noise for D - 1: at y = f the ratio is p^-D",
        pinned=(
            "(Noise.laplace (R:=R) p (y - f)) <= (((p^-1) ^+ D) *",
            "(Noise.laplace (R:=R) p (y - f)) <= (((p^-1) ^+ (D.-1)) *",
        ),
    ),
    Mutant(
        "Noise.v",
        "(1 - p) / (1 + p) * p ^+ `|z|%N.",
        "(1 + p) / (1 + p) * p ^+ `|z|%N.",
        "weights without their normaliser: the mass is (1 + p)/(1 - p)",
    ),
    Mutant(
        "Noise.v",
        "= 1 - 2%:R * p ^+ n.+1 / (1 + p).",
        "= 1 - p ^+ n.+1 / (1 + p).",
        "one tail of two: at n = 0 the mass is (1 - p)/(1 + p), not 1/(1 + p)",
        pinned=("(1 - ((2 * (p ^+ (n.+1))) / (1 + p)))", "(1 - ((p ^+ (n.+1)) / (1 + p)))"),
    ),
    Mutant(
        "Noise.v",
        "normal w c <= A ^+ 2 * normal w' c.",
        "normal w c <= A * normal w' c.",
        "one factor missing: the sum of the weights moves too",
        pinned=("(Noise.normal (R:=R) (C:=C) w c) <= ((A ^+ 2) *", "(Noise.normal (R:=R) (C:=C) w c) <= (A *"),
    ),
    Mutant(
        "Noise.v",
        "(worst err c <= worst err' c + D)%N.",
        "(worst err c <= worst err' c + D.-1)%N.",
        "a maximum of one term moves as far as the term",
        pinned=("((Noise.worst (C:=C) err' c) + D))%N", "((Noise.worst (C:=C) err' c) + D.-1))%N"),
    ),
    Mutant(
        "Noise.v",
        "Definition size_of (z : J -> int) := (\\max_j `|z j|)%N.",
        "Definition size_of (z : J -> int) := (\\sum_j `|z j|)%N.",
        "cube noise by the sum: it moves by D for each number",
    ),
    Mutant(
        "Noise.v",
        "(\\sum_j `|f j - f' j| <= D)%N ->\n  laplace_vector",
        "(forall j, `|f j - f' j| <= D)%N ->\n  laplace_vector",
        "every number may move by D, with noise for one of them",
        pinned=(
            "(((\\sum_j `|(f j) - (f' j)|) <= D)%N) ->\n       (Noise.laplace_vector",
            "(forall j : J, (`|(f j) - (f' j)| <= D)%N) ->\n       (Noise.laplace_vector",
        ),
    ),
    Mutant(
        "Real.v",
        "(forall c, err c <= err' c + D)%N -> (forall c, err' c <= err c + D)%N ->",
        "(forall c, err c <= err' c + 2 * D)%N -> (forall c, err' c <= err c + 2 * D)%N ->",
        "the exponential mechanism at eps/D for eps/(2 D), D its sensitivity: its ratio reaches e^(2 eps)",
        pinned=(
            "((err' c0) + D))%N) ->\n       (forall c0 : C, ((err' c0) <= ((err c0) + D))%N) ->",
            "((err' c0) + (2 * D)))%N) ->\n       (forall c0 : C, ((err' c0) <= ((err c0) + (2 * D)))%N) ->",
        ),
    ),
    Mutant(
        "Real.v",
        "(S : set int) :\n  0 < eps -> 0 < b -> D%:R / eps <= b ->",
        "(S : set int) :\n  0 < eps -> 0 < b -> D%:R / (2 * eps) <= b ->",
        "noise of half the scale: its ratio is e^(2 eps)",
        pinned=(
            "(S : set int),\n       (0 < eps) ->\n       (0 < b) ->\n       (((D%:R) / eps) <= b) ->",
            "(S : set int),\n       (0 < eps) ->\n       (0 < b) ->\n       (((D%:R) / (2 * eps)) <= b) ->",
        ),
    ),
    Mutant(
        "Real.v",
        "exponential eps D (worst err) c <= expR eps * exponential eps D (worst err') c.",
        "exponential eps D (worst err) c <= expR (eps / 2) * exponential eps D (worst err') c.",
        "(J1) at half its loss: the normaliser forgotten",
        pinned=(
            "((expR eps) * (Real.exponential (R:=R) (C:=finfun_finType J C) eps D (Noise.worst (C:=C) err') c))",
            "((expR (eps / 2)) * (Real.exponential (R:=R) (C:=finfun_finType J C) eps D (Noise.worst (C:=C) err') c))",
        ),
    ),
    Mutant(
        "Real.v",
        "0 < Z -> (forall j, `|f j - f' j| <= D)%N ->",
        "0 < Z -> (forall j, `|f j - f' j| <= D.+1)%N ->",
        "(K1) with noise for D where numbers move by D + 1",
        pinned=(
            "(0 < Z) ->\n       (forall j : J, (`|(f j) - (f' j)| <= D)%N) ->",
            "(0 < Z) ->\n       (forall j : J, (`|(f j) - (f' j)| <= D.+1)%N) ->",
        ),
    ),
    Mutant(
        "Real.v",
        "Theorem laplace_total (p : R) : 0 < p < 1 ->",
        "Theorem laplace_total (p : R) : 0 < p <= 1 ->",
        "p = 1: all weights are 0, and so is their sum",
        pinned=("(0 < p < 1) -> (\\esum_(z in [set: int])", "(0 < p <= 1) -> (\\esum_(z in [set: int])"),
    ),
    Mutant(
        "Real.v",
        "P 0%N S <= expR (e *+ k) * P k S + d * (\\sum_(j < k) expR (e *+ j)).",
        "P 0%N S <= expR (e *+ k) * P k S + d *+ k.",
        "(U1) with delta k times: each further step multiplies it by e^eps",
        pinned=(
            "(((expR (e *+ k)) * (P k S0)) + (d * (\\sum_(j < k) expR (e *+ j))))",
            "(((expR (e *+ k)) * (P k S0)) + (d *+ k))",
        ),
    ),
]

COUNT = [
    Mutant(
        "Count.v",
        "Definition sensitivity : nat := (128 * (L + 1) + 1)%N.",
        "Definition sensitivity : nat := (128 * (L + 1))%N.",
        "(N) without a step for rounding: values that are 1/256 off cross one more step",
    ),
    Mutant(
        "Count.v",
        "replaced v X X' -> `|E X - E X'| <= slack + 1.",
        "replaced v X X' -> `|E X - E X'| <= slack.",
        "(E) as a supremum, with sensitivity L",
        refuter="Extension.E_sharp",
        pinned=("(Count.E R (I:=I) near k L X')| <= ((L%:R) + 1)", "(Count.E R (I:=I) near k L X')| <= (L%:R)"),
    ),
    Mutant(
        "Count.v",
        "(y : int) :\n  (forall X, E X - 256%:R^-1 <= V X <= E X) ->",
        "(y : int) :\n  (forall X, E X - 1 <= V X <= E X) ->",
        "a value that is 1 off moves by L + 2, with noise for L + 1",
    ),
    Mutant(
        "Count.v",
        "floor (128%:R * (n%:R - V) + 2%:R^-1).",
        "floor (256%:R * (n%:R - V) + 2%:R^-1).",
        "steps of 1/256, with noise for steps of 1/128",
    ),
    Mutant(
        "Count.v",
        "`|V - V'| <= slack + 1 + 256%:R^-1 -> (`|steps",
        "`|V - V'| <= slack + 1 + 1 -> (`|steps",
        "values that are L + 2 apart are 128 (L + 2) steps apart",
        pinned=("(`|V - V'| <= (((L%:R) + 1) + (256^-1))) ->", "(`|V - V'| <= (((L%:R) + 1) + 1)) ->"),
    ),
    Mutant(
        "Groups.v",
        "`|group_count X g - group_count X' g| <= 2%:R * L%:R.",
        "`|group_count X g - group_count X' g| <= L%:R.",
        "groups summed without the factor 2: a record leaves one group and joins another",
        pinned=("near k L group X' g)|) <= (2 * (L%:R))", "near k L group X' g)|) <= (L%:R)"),
    ),
    Mutant(
        "Groups.v",
        "Hypothesis L_ge2 : (2 <= L)%N.",
        "Hypothesis L_ge2 : (0 <= L)%N.",
        "(B1) with L = 0: a record that changes its group moves each count by 1",
    ),
    Mutant(
        "Groups.v",
        "`|crowding_of X - crowding_of X'| <= k%:R + K%:R + 2%:R.",
        "`|crowding_of X - crowding_of X'| <= (k%:R + K%:R + 2%:R) / 2%:R.",
        "the crowding test with half its sensitivity: k = 1, K = 0, a pair that is parted moves it by 2",
        pinned=("<=\n       (((k%:R) + (K%:R)) + 2)", "<=\n       ((((k%:R) + (K%:R)) + 2) / 2)"),
    ),
    Mutant(
        "Groups.v",
        "E_on k L X A <= E_on k L X (A :\\ v)%SET + (L%:R + 1).",
        "E_on k L X A <= E_on k L X (A :\\ v)%SET + L%:R.",
        "one more record raises E by L only: the centre of a star brings itself too",
        refuter="Extension.E_sharp",
        pinned=(
            "((Groups.E_on R (I:=I) near k L X (A :\\ v)) + ((L%:R) + 1))",
            "((Groups.E_on R (I:=I) near k L X (A :\\ v)) + (L%:R))",
        ),
    ),
]

CERTIFICATES = [
    Mutant(
        "Certificate.v",
        "256%:Z * (parts_bound p c - parts_served a) <= U%:Z",
        "128%:Z * (parts_bound p c - parts_served a) <= U%:Z",
        "bounds 1/128 apart are accepted",
    ),
    Mutant(
        "Certificate.v",
        "[forall (j | j \\in A), 0 <= caps a j]",
        "[forall (j | j \\in A), caps a j <= caps a j]",
        "the checker accepts caps below 0, which serve isolated records",
        refuter="Extension.cap_ge0_is_needed",
    ),
    Mutant(
        "Certificate.v",
        "\\sum_(j | edge i j) flows a i j <= L%:Z * U%:Z",
        "\\sum_(j | edge i j) flows a i j <= (L%:Z + 1) * U%:Z",
        "the checker lets suppliers give L + 1",
    ),
    Mutant(
        "Certificate.v",
        "gains a j + (k%:Z - 1) * caps a j <= \\sum_(i | edge i j) flows a i j",
        "gains a j + (k%:Z - 2) * caps a j <= \\sum_(i | edge i j) flows a i j",
        "the checker takes k - 1 neighbours for enough",
    ),
    Mutant(
        "Certificate.v",
        "[forall (i | i \\in A), 0 <= p i]",
        "[forall (i | i \\in A), p i <= p i]",
        "the checker accepts prices below 0, which prove any bound",
    ),
    Mutant(
        "Certificate.v",
        "\\sum_(i | edge i j) Num.max 0 (c j - p i) <= (k%:Z - 1) * c j)",
        "\\sum_(i | edge i j) Num.max 0 (c j - p i) <= k%:Z * c j)",
        "the checker accepts costs that are too high",
    ),
    Mutant(
        "Certificate.v",
        "  L%:Z * (\\sum_(i in A) p i) + \\sum_(j in A | (k <= degree A e j)%N)",
        "  (\\sum_(i in A) p i) + \\sum_(j in A | (k <= degree A e j)%N)",
        "the bound of the prices without the cap",
    ),
    Mutant(
        "Certificate.v",
        "Definition fits (z : int) := - half <= z < half.",
        "Definition fits (z : int) := - half <= z <= half.",
        "the largest whole number of the machine is one less",
    ),
    Mutant(
        "Certificate.v",
        "((z + half) %% (half + half))%Z - half.",
        "((z + half) %% half)%Z - half.",
        "sums wrap around at half of what the machine holds",
    ),
    Mutant(
        "Certificate.v",
        "(n * B < 2 ^ bits)%N ->",
        "(n * B <= 2 ^ bits)%N ->",
        "one number that is as large as the machine's first that does not fit",
        pinned=("(((n * B) < (2 ^ bits))%N) ->", "(((n * B) <= (2 ^ bits))%N) ->"),
    ),
    Mutant(
        "Certificate.v",
        "((256%:Z * (n%:Z * U%:Z - W) + U%:Z) %/ (2%:Z * U%:Z))%Z.",
        "((256%:Z * (n%:Z * U%:Z - W)) %/ (2%:Z * U%:Z))%Z.",
        "steps rounded down by the program and to the nearest by the theorem",
    ),
    Mutant(
        "Certificate.v",
        "0 < eps -> 0 < b -> (sensitivity L)%:R / eps <= b ->",
        "0 < eps -> 0 < b -> (128 * (L + 1))%:R / eps <= b ->",
        "a certified count with noise for one step less",
    ),
]

WHO = [
    Mutant(
        "Who.v",
        "Definition coin (b : bool) : R := if b then 1 - q else q.",
        "Definition coin (b : bool) : R := if b then q else 1 - q.",
        "a coin that names with e^-eps: the list says who is there",
    ),
    Mutant(
        "Who.v",
        "Definition named (s : seq I) (c : coins) := take h [seq j <- s | c j].",
        "Definition named (s : seq I) (c : coins) := [seq j <- take h s | c j].",
        "the order is cut at h before coins are tossed: who leaves lets another in",
    ),
    Mutant(
        "Who.v",
        "who_in X Z <= q^-1 * who_in X' Z.",
        "who_in X Z <= who_in X' Z.",
        "(L) without eps: a record that is skipped with q might not be there at all",
        pinned=(
            "(Who.who_in (R:=R) q h X Z) <= ((q^-1) * (Who.who_in (R:=R) q h X' Z))",
            "(Who.who_in (R:=R) q h X Z) <= (Who.who_in (R:=R) q h X' Z)",
        ),
    ),
    Mutant(
        "Who.v",
        "Theorem L_sets X X' (Z : pred (seq I)) : adjacent X X' -> (forall o, Z o -> i \\notin o) ->",
        "Theorem L_sets X X' (Z : pred (seq I)) : adjacent X X' -> (forall o, Z o -> i \\in o) ->",
        "(L) for those who are named: nothing is promised to them",
        pinned=("(forall o : seq I, (Z o) -> i \\notin o)", "(forall o : seq I, (Z o) -> i \\in o)"),
    ),
    Mutant(
        "Who.v",
        "(forall j k, j != i -> k != i -> ahead X j k = ahead X' j k).",
        "(forall j k, j != i -> k != i -> ahead X j k = ahead X j k).",
        "adjacent tables in which others change places: the list tells them apart",
    ),
    Mutant(
        "Who.v",
        "p d * who q h (X d) o <= expR (e1 + eps) * (p' d * who q h (X' d) o).",
        "p d * who q h (X d) o <= expR eps * (p' d * who q h (X' d) o).",
        "(T) without the loss of the detector",
        pinned=("((expR (e1 + eps)) * ((p' d) * (Who.who", "((expR eps) * ((p' d) * (Who.who"),
    ),
    Mutant(
        "Who.v",
        "= (1 - q) * chance q (fun c => (count c (before (order X)) < h)%N).",
        "= (1 - q) * chance q (fun c => (count c (before (order X)) <= h)%N).",
        "(R) with h names before: the list is full then",
        pinned=(
            "((count c (Who.before (I:=I) i (Who.order X))) < h)%N",
            "((count c (Who.before (I:=I) i (Who.order X))) <= h)%N",
        ),
    ),
]

PEOPLE = [
    Mutant(
        "People.v",
        "Definition same_but i s s' := forall j, j != i -> rows_of j s = rows_of j s'.",
        "Definition same_but i s s' := forall j, j == i -> rows_of j s = rows_of j s'.",
        "(Y1) where the rows of all others change",
    ),
    Mutant(
        "People.v",
        "(forall j, j != i -> row_in second j = row_in second' j) ->",
        "(forall j, j == i -> row_in second j = row_in second' j) ->",
        "(Y3) where the rows of all others in the second table change",
    ),
    Mutant(
        "People.v",
        "(forall o, (#|kept o :&: mine| <= c)%N) ->",
        "(forall o, (#|kept o :&: mine| <= c.+1)%N) ->",
        "(Y2) for c + 1 kept rows at the price of c",
    ),
    Mutant(
        "People.v",
        "Hypothesis sees_kept : forall o X X' A, (forall r, r \\in kept o -> X r = X' r) ->",
        "Hypothesis sees_kept : forall o X X' A, (forall r, r \\in kept o -> X r = X r) -> X = X' ->",
        "(Y2) for a query that sees rows which are not kept",
    ),
    Mutant(
        "Paths.v",
        "concentrated ((k ^ 2)%:R * rho) (path 0%N) (path k).",
        "concentrated (k%:R * rho) (path 0%N) (path k).",
        "k rho for a path of k steps: group privacy of rho is quadratic",
        pinned=("(((k ^ 2)%:R) * rho)", "((k%:R) * rho)"),
    ),
    Mutant(
        "Paths.v",
        "concentrated ((j + 1) ^+ 2 * rho) p r.",
        "concentrated ((j ^+ 2 + 1) * rho) p r.",
        "steps add up as independent answers do: two steps at rho would cost 2 rho",
    ),
    Mutant(
        "Paths.v",
        "0 <= l -> 0 <= m -> l + m = 1 ->",
        "0 <= l -> 0 <= m -> l + m <= 1 ->",
        "a convexity without weights that add up to 1: e^0 <= 0 for l = m = 0",
    ),
    Mutant(
        "Paths.v",
        "(expR (e1 + e2))%:E * \\esum_(a in S) (both p' r' a)%:E)%E.",
        "(expR e1)%:E * \\esum_(a in S) (both p' r' a)%:E)%E.",
        "two parts of an answer at the price of the first",
    ),
]

TRUST = [
    Mutant(
        "Noise.v",
        "exact: leq_trans (leq_add_dist y f f') le.\nby rewrite divr_ge0 ?subr_ge0 ?addr_ge0 ?ler01 ?ltW.\nQed.",
        "Admitted.",
        "a proof that ends in Admitted",
        "axioms",
    ),
    Mutant(
        "Noise.v",
        "exact: leq_trans (leq_add_dist y f f') le.\nby rewrite divr_ge0",
        "admit.\nby rewrite divr_ge0",
        "a step that is admitted",
        "axioms",
    ),
    Mutant(
        "Real.v",
        "Section Instances.\nVariable R : realType.\n",
        "Axiom shorter : forall (R : realType) (x : R), expR x <= 1.\nSection Instances.\nVariable R : realType.\n",
        "a new axiom",
        "axioms",
    ),
    Mutant(
        "Noise.v",
        "Section Geometric.\nVariables",
        "Hypothesis shorter : forall (R : realFieldType) (p : R) (s s' D : nat), p ^+ s <= p^-1 ^+ D * p ^+ s'.\n"
        "Section Geometric.\nVariables",
        "a hypothesis outside a section, which is an axiom",
        "axioms",
    ),
    Mutant(
        "Filter.v",
        "Section Filter.\nVariables",
        "Unset Guard Checking.\nSection Filter.\nVariables",
        "recursion that need not end proves anything",
        "axioms",
    ),
    Mutant(
        "Noise.v",
        "Theorem worst_moves c : (worst err c <= worst err' c + D)%N.\nProof.\n",
        "Require Coq.Logic.Classical_Prop.\nTheorem worst_moves c : (worst err c <= worst err' c + D)%N.\nProof.\n"
        "have [_|] := Coq.Logic.Classical_Prop.classic (D = D); last by case.\n",
        "an axiom of the standard library that no row allows",
        "axioms",
    ),
    Mutant(
        "labels.txt",
        "Count.N_steps                      classical",
        "Count.N_steps                      none",
        "a row that hides the axioms of its lemma",
        "axioms",
    ),
    Mutant(
        "labels.txt",
        "Extension.E_sharp                  none",
        "Extension.E_sharp                  classical",
        "a row that allows axioms which its lemma does not use",
        "axioms",
    ),
]

LABELS = [
    Mutant(
        "Groups.v",
        "Theorem X_crowding v X X' :",
        "Theorem crowding_moves v X X' :",
        "a theorem removed, or renamed, while its label stays",
        "labels",
    ),
    Mutant(
        "labels.txt",
        "X      part     Groups.X_crowding ",
        "X      whole    Groups.X_crowding ",
        "whole for a lemma that proves a part: the steps of (X) are on paper",
        "labels",
    ),
    Mutant(
        "labels.txt",
        "mechanisms.md                 J1     epsilon  Real.J1_is_a_claim                 classical\n",
        "",
        "a lemma that a proof names and the map does not",
        "labels",
    ),
    Mutant(
        "labels.txt",
        "mechanisms.md                 K1     part     Real.K1_sets ",
        "mechanisms.md                 K2     part     Real.K1_sets ",
        "a lemma under a label that it does not prove",
        "labels",
    ),
    Mutant(
        "labels.txt",
        "F1     whole    Real.F1 ",
        "F1     proved   Real.F1 ",
        "a coverage that does not exist",
        "labels",
    ),
]

STATEMENTS = [
    Mutant(
        "Floor.v",
        "packing A lam -> floor_of A lam = #|out A|%:R -> forall j, j \\in out A -> lam j = 1.\n"
        "Proof.\nmove=> pl; rewrite",
        "packing A lam -> (1 < k)%N -> floor_of A lam = #|out A|%:R -> forall j, j \\in out A -> lam j = 1.\n"
        "Proof.\nmove=> pl _; rewrite",
        "an extra hypothesis: nothing is proved for k = 1 any more",
        "statements",
    ),
    Mutant(
        "Filter.v",
        "Corollary F1_transcript eps t w : 0 <= eps -> honest t -> covered w ->\n",
        "Corollary F1_transcript eps t w : 0 <= eps -> honest t -> covered w -> w != [::] ->\n",
        "an extra hypothesis: the empty transcript is not covered any more",
        "statements",
    ),
    Mutant(
        "Filter.v",
        "if r is Some a then good a else true) w.",
        "if r is Some a then good a else false) w.",
        "a weakened definition: transcripts with a refusal are not covered any more",
        "statements",
    ),
    Mutant(
        "Countable.v",
        "[/\\ 0 <= e /\\ 0 <= d, is_law p,",
        "[/\\ 1 <= e /\\ 0 <= d, is_law p,",
        "a weakened definition: questions with eps below 1 are not covered any more",
        "statements",
    ),
    Mutant(
        "Either.v",
        "[/\\ [/\\ 0 <= e, 0 <= d & 0 <= r],",
        "[/\\ [/\\ 1 <= e, 0 <= d & 0 <= r],",
        "a weakened definition: (F2) and (F3) do not cover questions with eps below 1 any more",
        "statements",
    ),
    Mutant(
        "statements.txt",
        "Count.sensitivity = fun L : nat => ((128 * (L + 1)) + 1)%N",
        "Count.sensitivity = fun L : nat => (128 * (L + 1))%N",
        "the pinned definition is not the one that was compiled",
        "statements",
    ),
]

MUTANTS = [
    *EXTENSION,
    *DUALITY,
    *FLOOR,
    *PAIRING,
    *FILTERS,
    *EITHER,
    *NOISE,
    *COUNT,
    *CERTIFICATES,
    *WHO,
    *PEOPLE,
    *TRUST,
    *LABELS,
    *STATEMENTS,
]


def list_changes(mutant: Mutant) -> list[tuple[str, str, str]]:
    """List the changes of a mutant as (path inside `proofs/`, old text, new text)."""
    path = f"theories/{mutant.file}" if mutant.file.endswith(".v") else mutant.file
    changes = [(path, mutant.old, mutant.new)]
    return changes + ([("statements.txt", *mutant.pinned)] if mutant.pinned else [])


def find_faults(mutant: Mutant, folder: Path = HERE) -> list[str]:
    """Find changes that do not apply exactly once to the files of `folder`."""
    counts = [
        (path, old, (folder / path).read_text(encoding="utf-8").count(old)) for path, old, _ in list_changes(mutant)
    ]
    return [f"{path}: {old!r} occurs {count} times" for path, old, count in counts if count != 1]


def apply_mutant(mutant: Mutant, folder: Path) -> None:
    """Change the files of `folder`; raise ValueError if a change does not apply exactly once."""
    if faults := find_faults(mutant, folder):
        raise ValueError("; ".join(faults))
    for path, old, new in list_changes(mutant):
        text = (folder / path).read_text(encoding="utf-8")
        (folder / path).write_text(text.replace(old, new), encoding="utf-8")


def find_dependents(stem: str, theories: Path) -> list[str]:
    """Return a theory and those that require it, in the order of `_CoqProject`, which is an order of compilation."""
    order = re.findall(r"^theories/(\w+)\.v$", (theories.parent / "_CoqProject").read_text(encoding="utf-8"), re.M)
    stale = {stem}
    for name in order:
        text = (theories / f"{name}.v").read_text(encoding="utf-8")
        required = {
            word for line in re.findall(r"^From wallflower Require Import (.*)\.$", text, re.M) for word in line.split()
        }
        if required & stale:
            stale.add(name)
    return [name for name in order if name in stale]


def find_proof(text: str, line: int, column: int) -> str:
    """Return the lemma whose proof holds a place of a theory; '' for a place outside `Proof.` and `Qed.`."""
    lines = text.splitlines(keepends=True)
    before = "".join(lines[: line - 1]) + lines[line - 1][: column + 1]
    names = re.findall(r"^(?:Theorem|Lemma|Corollary) (\w+)", before, re.M)
    return names[-1] if before.rfind("Proof.") > before.rfind("Qed.") else ""


def build(stems: Iterable[str], folder: Path) -> str:
    """Compile theories; return '' or the first lemma whose proof fails.

    Raise ValueError for an error outside a proof and TimeoutExpired for a proof that neither passes nor fails.
    """
    flags = ["-w", "none", "-Q", "theories", "wallflower"]
    for stem in stems:
        command = ["coqc", *flags, f"theories/{stem}.v"]
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, check=False, timeout=COMPILE_TIMEOUT_SECONDS
        )
        if done.returncode:
            place = re.search(r"line (\d+), characters (\d+)-\d+:\n(?!Warning)", done.stderr)
            text = (folder / "theories" / f"{stem}.v").read_text(encoding="utf-8")
            lemma = find_proof(text, int(place[1]), int(place[2])) if place else ""
            if not lemma:
                raise ValueError(f"the error is not in a proof: {done.stderr.strip()}")
            return f"the proof of {stem}.{lemma} fails"
    return ""


def load_check(folder: Path) -> ModuleType:
    """Load `check.py` of a copy of `proofs/`, which then reads that copy."""
    spec = spec_from_file_location("check_of_mutant", folder / "check.py")
    if spec is None or spec.loader is None:
        raise ImportError(f"{folder}/check.py cannot be loaded")
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def classify_fault(fault: str) -> str:
    """Name the step that a message of `check.py` comes from."""
    if "differs from statements.txt" in fault:
        return "statements"
    is_trust = re.search(r" is not allowed$|: outside a section: | uses ", fault)
    return "axioms" if is_trust else "labels"


def run_mutant(mutant: Mutant, folder: Path) -> tuple[str, str]:
    """Apply a mutant to a copy of `proofs/`; return the step that refuses it, '' if none does, and the message."""
    apply_mutant(mutant, folder)
    check = load_check(folder)
    try:
        rows = check.read_rows()
    except ValueError as error:
        return "labels", str(error)
    steps: list[Callable[[], list[str]]] = [lambda: [*check.check_sources(rows), *check.check_marks(rows)]]
    if mutant.file.endswith(".v"):
        stems = find_dependents(mutant.file.removesuffix(".v"), folder / "theories")
        steps.append(lambda: [place] if (place := build(stems, folder)) else [])
    modules = {row.module for row in rows if mutant.file == f"{row.module}.v" or row.lemma in mutant.new.split()}
    steps.append(lambda: list(check.check_audit(rows, write=False, modules=modules)))
    for step in steps:
        with redirect_stdout(StringIO()):  # the axioms of each lemma
            faults = step()
        if faults:
            is_build = len(steps) == 3 and step is steps[1]
            return "build" if is_build else classify_fault(faults[0]), faults[0]
    return "", ""


def copy_proofs(folder: Path) -> Path:
    """Copy `proofs/` with its compiled theories, beside a link to the proofs on paper; return the copy."""
    (folder / "src").symlink_to(HERE.parent / "src")
    return Path(
        shutil.copytree(HERE, folder / "proofs", ignore=shutil.ignore_patterns("__pycache__", "*.glob", "Audit*"))
    )


def main() -> int:
    parser = argparse.ArgumentParser(description="Check that false statements are refused.")
    parser.add_argument("--only", type=int, metavar="N", help="run mutant N; default: all of them")
    parser.add_argument("--list", action="store_true", help="print the mutants and run none")
    arguments = parser.parse_args()
    numbers = range(len(MUTANTS)) if arguments.only is None else [arguments.only]
    if arguments.list:
        for number in numbers:
            mutant = MUTANTS[number]
            print(f"{number:3} {mutant.refused_by:10} {mutant.file:14} {mutant.reason}")
        return 0
    subprocess.run(["make", "-s", "-C", str(HERE), "build"], check=True)  # noqa: S607
    start, accepted = time.monotonic(), 0
    for number in numbers:
        mutant = MUTANTS[number]
        with tempfile.TemporaryDirectory() as name:
            try:
                step, message = run_mutant(mutant, copy_proofs(Path(name)))
            except (ValueError, subprocess.TimeoutExpired, SystemExit) as error:
                step, message = "error", str(error)
        is_refused = step == mutant.refused_by
        accepted += not is_refused
        verdict = f"refused by {step}" if is_refused else f"NOT REFUSED by {mutant.refused_by} ({step or 'accepted'})"
        place = f" [{message.splitlines()[0][:100]}]" if is_refused else f"\n{message}"
        print(f"{number:3} {verdict}: {mutant.file}: {mutant.reason}{place}", flush=True)
    print(f"{len(numbers) - accepted} of {len(numbers)} mutants refused in {time.monotonic() - start:.0f} s")
    return bool(accepted)


if __name__ == "__main__":
    sys.exit(main())
