"""Outliers among readings that are perturbed before they leave their sensor.

A sensor clips a reading to a public box and adds noise on a public grid (`perturbation`). Two servers of different
operators find the outliers together: the analyst holds perturbed readings, the correction server holds what corrects
them, and the stream owner gets the result. There are three ways to correct, the first that of [Boe17]:

`paper`     the correction server learns by how far noise moved each distance (`correction`, after a detector)
`grid`      the same, but the analyst sends coarse distances and one comparison decides (`correction`)
`exact`     each server holds one key of a comparison and learns nothing beyond the perturbed reading (`comparison`);
            if the threshold is not known beforehand, a noisy histogram shows one (`threshold`)

If the threshold is known beforehand, mode `direct` needs no servers: the sensor seals the bit to the stream owner.

`parameters`   the public parameter set               `device`      from readings to finished frames
`protocol/`    the messages between the parties       `parties/`    the parties as programs on a network
`simulation`   all parties in one process: the functions below, to try parameters, to teach and to test

>>> import wallflower as wf
>>> simulation = wf.sensors.simulate(1000, seed=7)
>>> sent = wf.sensors.perturb(simulation.readings, columns=simulation.columns, threshold="5", epsilon="0.2")
>>> wf.sensors.judge(sent).count
50

What is promised, and to whom: proof.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wallflower.machine.lazy import Lazy

if TYPE_CHECKING:
    import wallflower.sensors.parameters as _parameters
    import wallflower.sensors.simulation as _simulation
    from wallflower.sensors.parameters import outlier_width as outlier_width
    from wallflower.sensors.parameters import usual_ranges as usual_ranges
    from wallflower.sensors.simulation import Judgement as Judgement
    from wallflower.sensors.simulation import PerturbedReadings as PerturbedReadings
    from wallflower.sensors.simulation import Simulation as Simulation
    from wallflower.sensors.simulation import judge as judge
    from wallflower.sensors.simulation import perturb as perturb
    from wallflower.sensors.simulation import simulate as simulate
else:
    _parameters = Lazy("wallflower.sensors.parameters")
    _simulation = Lazy("wallflower.sensors.simulation")

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


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used: `import wallflower` must not wait for cryptography."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_parameters if name in ("outlier_width", "usual_ranges") else _simulation, name)
