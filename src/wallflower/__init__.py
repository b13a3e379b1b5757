"""Questions about outliers in private data, answered under differential privacy."""

from typing import TYPE_CHECKING, Any

from wallflower.batch import plan_all
from wallflower.data import Points, Schema, Table, load
from wallflower.dataset import open_dataset as open  # noqa: A004 - `wf.open` is what people will type
from wallflower.errors import BudgetExhausted, PrivacyError
from wallflower.external import charge_external
from wallflower.ledger import Ledger
from wallflower.machine.heavy import missing_package
from wallflower.machine.lazy import load as load_module
from wallflower.machine.version import VERSION
from wallflower.privacy import Loss
from wallflower.queries.count import Count
from wallflower.queries.detector import Detector
from wallflower.queries.detector.flags import Flags
from wallflower.queries.detector.tally import Tally
from wallflower.queries.detector.threshold import Threshold
from wallflower.queries.explain import Explain
from wallflower.queries.explain.detectors import CustomDetector, CustomMarginDetector
from wallflower.queries.profile import Profile
from wallflower.queries.radius import Radius
from wallflower.queries.scale import Scale
from wallflower.queries.shift import Shift
from wallflower.queries.subspaces import Subspaces
from wallflower.queries.watch import Watch
from wallflower.queries.watch.baseline import Baseline
from wallflower.queries.who import Who
from wallflower.release import Release, release
from wallflower.release.answer import compare
from wallflower.remote import connect
from wallflower.schema import Join, Person
from wallflower.streams import watching
from wallflower.streams.fleet import fleet
from wallflower.units import Protection

if TYPE_CHECKING:
    from wallflower import sensors as sensors
    from wallflower.queries.explain.draws.utilities import CustomUtility

__version__ = VERSION

__all__ = [
    "Baseline",
    "BudgetExhausted",
    "Count",
    "CustomDetector",
    "CustomMarginDetector",
    "CustomUtility",
    "Detector",
    "Explain",
    "Flags",
    "Join",
    "Ledger",
    "Loss",
    "Person",
    "Points",
    "PrivacyError",
    "Profile",
    "Protection",
    "Radius",
    "Release",
    "Scale",
    "Schema",
    "Shift",
    "Subspaces",
    "Table",
    "Tally",
    "Threshold",
    "Watch",
    "Who",
    "__version__",
    "charge_external",
    "compare",
    "connect",
    "fleet",
    "load",
    "open",
    "plan_all",
    "release",
    "sensors",
    "watching",
]


def __getattr__(name: str) -> Any:
    """Load on first use what takes time: `wf.sklearn`, and `CustomUtility` with the searches of `explain`."""
    if name in ("sensors", "sklearn"):  # each needs an extra
        return _load_extra(f"wallflower.{name}")
    if name == "CustomUtility":
        return load_module("wallflower.queries.explain.draws.utilities").CustomUtility
    raise AttributeError(f"module 'wallflower' has no attribute {name!r}")


def _load_extra(name: str) -> Any:
    try:
        return load_module(name)
    except ModuleNotFoundError as error:
        raise missing_package(error) or error from None
