"""Which perturbed readings are presumed to be outliers, by any detector: step 2 of [Boe17, Figure 2].

The paper asks for a standard outlier detection and names none. Detectors see perturbed readings only, so each of them
is post-processing: the guarantee does not depend on which one is chosen.  (L)

`dbscan`                                        all readings outside the biggest cluster; the default
`sklearn:MODULE.CLASS`, `pyod:MODULE.CLASS`     an estimator of scikit-learn or PyOD, with settings as in
                                                sklearn:neighbors.LocalOutlierFactor:n_neighbors=20
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from wallflower.errors import DataError, ParameterError
from wallflower.machine.lazy import load
from wallflower.names import name_callable

Flags = NDArray[np.bool_]
Presume = Callable[[NDArray[np.float64]], Any]  # readings in scaled units, to one truth value for each

DBSCAN: Final = "dbscan"
PACKAGES: Final[Mapping[str, str]] = {"sklearn": "sklearn", "pyod": "pyod.models"}
_INSTALL: Final[Mapping[str, str]] = {"sklearn": "scikit-learn", "pyod": "pyod"}
_NAME: Final = re.compile(r"(sklearn|pyod):([a-z_]\w*)\.([A-Z]\w*)((?::\w+=[\w.+-]+)(?:,\w+=[\w.+-]+)*)?", re.ASCII)
_WORDS: Final[Mapping[str, Any]] = {"True": True, "False": False, "None": None}


def check_detector(name: str) -> None:
    """Refuse a name that is not a detector's; the package itself is loaded when a window is judged."""
    if name != DBSCAN and not _NAME.fullmatch(name):
        raise ParameterError(
            f"detector: {name[:60]!r} is not a detector. It is dbscan, or a class of scikit-learn or PyOD with its "
            "settings. Write one such as 'sklearn:neighbors.LocalOutlierFactor:n_neighbors=20'."
        )


def detector_by_name(name: str) -> Presume:
    """The detector of a name other than dbscan."""
    check_detector(name)
    match = _NAME.fullmatch(name)
    if match is None:
        raise ParameterError("detector: dbscan has its own settings, radius and neighbours. Name another one.")
    package, module, kind, settings = match.groups()
    pairs = (part.split("=", 1) for part in (settings or ":").removeprefix(":").split(",") if part)
    try:
        made = getattr(load(f"{PACKAGES[package]}.{module}"), kind)
    except ModuleNotFoundError as error:
        raise ParameterError(
            f"detector: {package}.{module} cannot be imported. Correct the name, or install the package: "
            f"pip install {_INSTALL[package]}."
        ) from error
    except AttributeError:
        raise ParameterError(f"detector: {package} has no {module}.{kind}. Correct the name.") from None
    try:
        return estimator_flags(made(**{key: _value(text) for key, text in pairs}))
    except TypeError:
        raise ParameterError(f"detector: {module}.{kind} does not take these settings. Correct them.") from None


def estimator_flags(estimator: Any) -> Presume:
    """How an estimator is asked: PyOD flags by `labels_` 1, scikit-learn by -1 of `fit_predict`."""

    def flag(values: NDArray[np.float64]) -> Any:
        if hasattr(estimator, "decision_function") and "pyod" in type(estimator).__module__:
            return np.asarray(estimator.fit(values).labels_) == 1
        return np.asarray(estimator.fit_predict(values)) == -1

    return flag


def presume(values: NDArray[np.float64], detector: Presume | Any) -> Flags:
    """Flags of readings in scaled units by a function, or by an estimator with `fit_predict`."""
    is_estimator = hasattr(detector, "fit_predict") or hasattr(detector, "decision_function")
    ask = estimator_flags(detector) if is_estimator else detector
    try:
        flags = np.asarray(ask(values))
    except Exception as error:
        raise DataError(
            f"detector: {name_callable(detector)} fails on the perturbed readings, with {type(error).__name__}. "
            "Correct it, or choose another."
        ) from error
    if flags.shape != (len(values),) or flags.dtype != np.bool_:
        raise DataError(
            "detector: it did not return one truth value for each reading. Return a boolean array, True for outliers."
        )
    return flags


def _value(text: str) -> Any:
    if text in _WORDS:
        return _WORDS[text]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
