"""Outliers among readings that are perturbed before they leave their sensor.

A sensor clips a reading to a public box and adds noise on a public grid (`perturbation`, `lattice`). Two servers of
different operators find the outliers together: the analyst holds perturbed readings, the correction server holds what
corrects them, and the owner of the stream gets the result. There are three ways to correct, the first that of [Boe17]:

`paper`     the correction server learns by how far noise moved each distance (`correction`, after `dbscan`)
`grid`      the same, but the analyst sends coarse distances and one comparison decides (`grid`)
`exact`     each server holds one key of a comparison and learns nothing beyond the perturbed reading (`comparison`,
            `dcf`); if the threshold is not known beforehand, a noisy histogram shows one (`threshold`)

If the threshold is known beforehand, mode `direct` needs no servers: the sensor seals the bit to the owner.

`protocol/`    what the parties send each other       `parties/`   the parties as programs on a network
`simulation`   all parties in one process: the functions below, to try parameters, to teach and to test

>>> import wallflower as wf
>>> simulated = wf.sensors.simulate(1000, seed=7)
>>> sent = wf.sensors.perturb(simulated.readings, columns=simulated.columns, threshold="5", epsilon="0.2")
>>> judgement = wf.sensors.judge(sent)

What is promised, and to whom: proof.md.
"""

from __future__ import annotations

from wallflower.sensors.history import outlier_width, usual_ranges
from wallflower.sensors.results import Judgement, PerturbedReadings, Simulation
from wallflower.sensors.simulation import judge, perturb, simulate

__all__ = [
    "Judgement",
    "PerturbedReadings",
    "Simulation",
    "judge",
    "outlier_width",
    "perturb",
    "simulate",
    "usual_ranges",
]
