"""Sessions of Spark that records may be given to: what is demanded of one, and how to make one.

Spark writes what it shuffles and keeps to disk, sends it between machines, and shows what it does on a web page and in
a log. So files and connections must be encrypted, and page and log be off; a steward who answers for the cluster in
another way says `insecure`. This folder alone imports pyspark.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from wallflower.engines.local import FOLDER
from wallflower.errors import ParameterError, PrivacyError, SourceError
from wallflower.machine.lazy import Lazy, is_there

if TYPE_CHECKING:
    import py4j.protocol as _py4j
    import pyspark as _pyspark
    import pyspark.errors as _errors
    import pyspark.sql as _sql
else:
    _py4j = Lazy("py4j.protocol")
    _pyspark = Lazy("pyspark")
    _errors = Lazy("pyspark.errors")
    _sql = Lazy("pyspark.sql")

T = TypeVar("T")

_NO_LOG: Final = """\
rootLogger.level = off
rootLogger.appenderRef.none.ref = none
appender.none.type = Null
appender.none.name = none
"""

MASTER: Final = re.compile(r"local|local(-cluster)?\[[\w*, ]+\]|spark://\S+|k8s://\S+|yarn")
DEMANDS: Final[Mapping[str, tuple[str, str]]] = {  # what must be said, and what Spark takes for granted
    "spark.io.encryption.enabled": ("true", "false"),
    "spark.ui.enabled": ("false", "true"),
    "spark.eventLog.enabled": ("false", "false"),
}
BETWEEN_MACHINES: Final[Mapping[str, tuple[str, str]]] = {
    "spark.authenticate": ("true", "false"),
    "spark.network.crypto.enabled": ("true", "false"),
}
OWN: Final[Mapping[str, str]] = {
    "spark.io.encryption.keySizeBits": "256",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.maxResultSize": "0",  # how much comes back depends on the records, and no answer fails for it
}
READING: Final[Mapping[str, str]] = {  # for a session of SQL beside the steward's
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": str(1 << 16),
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
}


def is_master(text: str) -> bool:
    """Whether this names a cluster, or cores of this machine.

    >>> is_master("local[2,4]"), is_master("spark://host:7077"), is_master("tiles")
    (True, True, False)
    """
    return MASTER.fullmatch(text) is not None


def is_session(thing: object) -> bool:
    """Whether this is a session of Spark; asked without importing it."""
    return type(thing).__module__.startswith("pyspark.sql") and hasattr(type(thing), "newSession")


def require_private(session: Any) -> None:
    """Refuse a session whose files, connections, page or log would show records."""
    conf = session.sparkContext.getConf()
    master = conf.get("spark.master", "")
    demands = DEMANDS if master == "local" or master.startswith("local[") else {**DEMANDS, **BETWEEN_MACHINES}
    unmet = [f"{name}={wanted}" for name, (wanted, usual) in demands.items() if conf.get(name, usual) != wanted]
    if unmet == ["spark.network.crypto.enabled=true"] and conf.get("spark.ssl.rpc.enabled", "false") == "true":
        return
    if unmet:
        raise ParameterError(
            f"engine: this Spark session would show records to others; it must have {', '.join(unmet)}. Start it so, "
            "let wallflower start one (engine='spark://host:7077'), or answer for the cluster yourself: "
            "SparkEngine(session, insecure=True)."
        )


def private_context(session: Any) -> Any:
    """The context of a session, of a kind that jobs can be given to."""
    if "connect" in type(session).__module__:
        raise ParameterError(
            "engine: this is a session of Spark Connect, and jobs need a session of their own process. "
            "Name the cluster instead (engine='spark://host:7077'), or use SparkSession.builder.master(...)."
        )
    return session.sparkContext


@dataclass(frozen=True, slots=True)
class OwnSession:
    """A session that was made here, and the folder it writes to."""

    session: Any
    folder: str

    def close(self) -> None:
        """Stop it, and remove what it wrote."""
        context = _pyspark.SparkContext
        gateway = context._gateway
        with suppress(OSError, _py4j.Py4JError):
            self.session.stop()
        if gateway is not None:
            gateway.shutdown()
            gateway.proc.stdin.close()  # which Java takes for the end of its parent process
            gateway.proc.wait()
            context._gateway = context._jvm = None
        shutil.rmtree(self.folder, ignore_errors=True)


def start(master: str) -> OwnSession:
    """A session on this cluster, or on cores of this machine, with all that is demanded of one."""
    if not is_there("pyspark"):
        raise ParameterError(f"engine: {master[:40]!r} needs Spark. Install it: pip install 'wallflower[spark]'.")
    if _pyspark.SparkContext._active_spark_context is not None:
        raise ParameterError(
            "engine: this process has a session of Spark already, and there can be one only. "
            "Pass it (engine=session), or stop it."
        )
    folder = tempfile.mkdtemp(prefix="wallflower-spark-", dir=os.environ.get(FOLDER))  # mode 0700
    is_local = master == "local" or master.startswith("local[")
    settings = {name: wanted for name, (wanted, _) in {**DEMANDS, **({} if is_local else BETWEEN_MACHINES)}.items()}
    settings |= {**OWN, "spark.local.dir": folder, "spark.sql.warehouse.dir": f"{folder}/warehouse"}
    settings["spark.driver.extraJavaOptions"] = f"-Djava.io.tmpdir={folder} -XX:-UsePerfData {_hush(folder)}"
    if is_local:
        settings |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    try:
        with _environment(is_local, folder), _unheard():
            builder = _sql.SparkSession.builder.master(master).appName("wallflower")
            return OwnSession(run(lambda: builder.config(map=settings).getOrCreate(), _no_session(master)), folder)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _hush(folder: str) -> str:
    """How Java is told to log nothing: what it says of a failure may quote records."""
    Path(folder, "log4j2.properties").write_text(_NO_LOG)
    return f"-Dlog4j2.configurationFile=file:{folder}/log4j2.properties"


@contextmanager
def _environment(is_local: bool, folder: str) -> Iterator[None]:
    """On this machine, workers run the Python that asks, and a folder that was named for others is not used."""
    environment = {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_DIRS": folder, "SPARK_LOCAL_IP": "127.0.0.1"}
    wanted = environment if is_local else {}
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None) if value is None else os.environ.update({name: value})


@contextmanager
def _unheard() -> Iterator[None]:
    """Java, and the workers it starts, write to the error output that they find; they find none."""
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


@contextmanager
def quiet() -> Iterator[None]:
    """Without what PySpark says about versions of pandas, which is not used."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def run(call: Callable[[], T], otherwise: PrivacyError | None = None) -> T:
    """`call()`, or a refusal that holds nothing of what Spark said."""
    try:
        with quiet():
            return call()
    except PrivacyError:
        raise
    except (_py4j.Py4JError, _errors.PySparkException, OSError, EOFError, RuntimeError) as error:
        refusal = otherwise or _failure(str(error))
    raise refusal


def _failure(said: str) -> SourceError:
    """Whether a disk is full, or a machine lost, follows from how much is written and not from what."""
    if any(words in said for words in ("No space left on device", "Disk quota exceeded", "File too large")):
        return SourceError(
            f"Spark has no room left for its scratch. Free some, or name another folder: {FOLDER} on this machine, "
            "spark.local.dir on a cluster."
        )
    return SourceError(
        "Spark could not finish the job: a file could not be read, or tasks were lost more often than it tries again. "
        "Look at the cluster, and ask again; Spark's own message is withheld, it may quote records."
    )


def _no_session(master: str) -> SourceError:
    return SourceError(
        f"Spark did not start on {master[:60]!r}. It needs Java 17 (JAVA_HOME), and a cluster needs "
        "spark.authenticate.secret, in its conf/spark-defaults.conf and in that of this machine (SPARK_CONF_DIR)."
    )
