"""Third-party packages that are slow to load, imported when first used.

Import them from here: the names are typed for mypy and cost nothing until an attribute is read, so that
`wallflower --help` does not wait for them. Modules of wallflower import each other plainly.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from wallflower.errors import PackageMissing
from wallflower.machine.lazy import Lazy, is_there

__all__ = [
    "EXTRAS",
    "cryptography_exceptions",
    "cryptography_hazmat_primitives_asymmetric_x25519",
    "cryptography_hazmat_primitives_ciphers_aead",
    "duckdb",
    "matplotlib",
    "matplotlib_figure",
    "matplotlib_layout_engine",
    "matplotlib_ticker",
    "missing_package",
    "numpy_polynomial",
    "paho_mqtt_client",
    "paho_mqtt_enums",
    "paho_mqtt_packettypes",
    "paho_mqtt_properties",
    "paho_mqtt_subscribeoptions",
    "pandas",
    "polars_exceptions",
    "psycopg",
    "pyarrow",
    "pyarrow_compute",
    "pyarrow_csv",
    "pyarrow_fs",
    "pyarrow_ipc",
    "pyarrow_parquet",
    "pyarrow_types",
    "python_calamine",
    "require_package",
    "scipy_optimize",
    "scipy_sparse",
    "scipy_special",
    "sklearn_datasets",
    "sklearn_metrics",
    "sqlalchemy",
]

if TYPE_CHECKING:
    import cryptography.exceptions as cryptography_exceptions
    import cryptography.hazmat.primitives.asymmetric.x25519 as cryptography_hazmat_primitives_asymmetric_x25519
    import cryptography.hazmat.primitives.ciphers.aead as cryptography_hazmat_primitives_ciphers_aead
    import duckdb as duckdb
    import matplotlib as matplotlib
    import matplotlib.figure as matplotlib_figure
    import matplotlib.layout_engine as matplotlib_layout_engine
    import matplotlib.ticker as matplotlib_ticker
    import numpy.polynomial as numpy_polynomial
    import paho.mqtt.client as paho_mqtt_client
    import paho.mqtt.enums as paho_mqtt_enums
    import paho.mqtt.packettypes as paho_mqtt_packettypes
    import paho.mqtt.properties as paho_mqtt_properties
    import paho.mqtt.subscribeoptions as paho_mqtt_subscribeoptions
    import pandas as pandas
    import polars.exceptions as polars_exceptions
    import psycopg as psycopg
    import pyarrow as pyarrow
    import pyarrow.compute as pyarrow_compute
    import pyarrow.csv as pyarrow_csv
    import pyarrow.fs as pyarrow_fs
    import pyarrow.ipc as pyarrow_ipc
    import pyarrow.parquet as pyarrow_parquet
    import pyarrow.types as pyarrow_types
    import python_calamine as python_calamine
    import scipy.optimize as scipy_optimize
    import scipy.sparse as scipy_sparse
    import scipy.special as scipy_special
    import sklearn.datasets as sklearn_datasets
    import sklearn.metrics as sklearn_metrics
    import sqlalchemy as sqlalchemy
else:
    cryptography_exceptions = Lazy("cryptography.exceptions", extra="sensors")
    cryptography_hazmat_primitives_asymmetric_x25519 = Lazy(
        "cryptography.hazmat.primitives.asymmetric.x25519", extra="sensors"
    )
    cryptography_hazmat_primitives_ciphers_aead = Lazy("cryptography.hazmat.primitives.ciphers.aead", extra="sensors")
    duckdb = Lazy("duckdb", extra="duckdb")
    matplotlib = Lazy("matplotlib", extra="plots")
    matplotlib_figure = Lazy("matplotlib.figure", extra="plots")
    matplotlib_layout_engine = Lazy("matplotlib.layout_engine", extra="plots")
    matplotlib_ticker = Lazy("matplotlib.ticker", extra="plots")
    numpy_polynomial = Lazy("numpy.polynomial")
    paho_mqtt_client = Lazy("paho.mqtt.client", extra="mqtt")
    paho_mqtt_enums = Lazy("paho.mqtt.enums", extra="mqtt")
    paho_mqtt_packettypes = Lazy("paho.mqtt.packettypes", extra="mqtt")
    paho_mqtt_properties = Lazy("paho.mqtt.properties", extra="mqtt")
    paho_mqtt_subscribeoptions = Lazy("paho.mqtt.subscribeoptions", extra="mqtt")
    pandas = Lazy("pandas", extra="frames")
    polars_exceptions = Lazy("polars.exceptions", extra="frames")
    psycopg = Lazy("psycopg", extra="postgres")
    pyarrow = Lazy("pyarrow")
    pyarrow_compute = Lazy("pyarrow.compute")
    pyarrow_csv = Lazy("pyarrow.csv")
    pyarrow_fs = Lazy("pyarrow.fs")
    pyarrow_ipc = Lazy("pyarrow.ipc")
    pyarrow_parquet = Lazy("pyarrow.parquet")
    pyarrow_types = Lazy("pyarrow.types")
    python_calamine = Lazy("python_calamine", extra="excel")
    scipy_optimize = Lazy("scipy.optimize")
    scipy_sparse = Lazy("scipy.sparse")
    scipy_special = Lazy("scipy.special")
    sklearn_datasets = Lazy("sklearn.datasets", extra="sklearn")
    sklearn_metrics = Lazy("sklearn.metrics", extra="sklearn")
    sqlalchemy = Lazy("sqlalchemy")

# The extra of pyproject.toml that brings a package.
EXTRAS: Final[Mapping[str, str]] = {
    "authlib": "service",
    "babel": "service",
    "cryptography": "sensors",
    "duckdb": "duckdb",
    "fastapi": "service",
    "httptools": "service",
    "httpx2": "service",
    "jinja2": "service",
    "joserfc": "service",
    "matplotlib": "plots",
    "mcp": "mcp",
    "mcp_types": "mcp",
    "paho": "mqtt",
    "pandas": "frames",
    "polars": "frames",
    "prometheus_client": "service",
    "psycopg": "postgres",
    "pyspark": "spark",
    "python_calamine": "excel",
    "segno": "service",
    "sklearn": "sklearn",
    "starlette": "service",
    "uvicorn": "service",
}


def require_package(package: str) -> None:
    """Refuse to go on without a package of an extra.

    >>> require_package("json")
    """
    if not is_there(package):
        raise PackageMissing(package, extra=EXTRAS[package])


def missing_package(error: ModuleNotFoundError) -> PackageMissing | None:
    """Return the error that names the extra of a package that was not found; None for any other module.

    >>> missing_package(ModuleNotFoundError(name="fastapi.routing")).extra
    'service'
    """
    package = (error.name or "").partition(".")[0]
    return PackageMissing(package, extra=EXTRAS[package]) if package in EXTRAS else None
