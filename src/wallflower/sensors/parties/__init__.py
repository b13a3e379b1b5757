"""The parties of a sensor stream as programs that talk over a network: devices, two servers and the stream owner.

`keys`            certificates of one authority, their revocation, and the signed parameter set
`outbox`, `store` SQLite files: what a sensor, and what a server or the stream owner, remembers
`device`          a sensor: finishes and pays for frames before the first is sent
`party`           what servers and stream owner share: intake of frames, and a worker
`servers`         analyst and correction server, which judge readings together
`owner`           the stream owner, who gets the result (`owner_page` shows it)
`client`, `web`   HTTP and TLS, from both ends
`demo`            all parties on one machine
"""

from __future__ import annotations

from wallflower.sensors.device import recipients
from wallflower.sensors.parameters import Parameters
from wallflower.sensors.parties.demo import Plan, run_demo
from wallflower.sensors.parties.device import WINDOW_COLUMN, Device, cut_batches, fetch_parameters, send_stream
from wallflower.sensors.parties.keys import (
    DEFAULT_HOSTS,
    ROLES,
    Identity,
    make_keys,
    revoke,
    sign_parameters,
    verify_parameters,
)
from wallflower.sensors.parties.store import export_schema, read_perturbed_windows
from wallflower.sensors.parties.web import run_party

__all__ = [
    "DEFAULT_HOSTS",
    "ROLES",
    "WINDOW_COLUMN",
    "Device",
    "Identity",
    "Parameters",
    "Plan",
    "cut_batches",
    "export_schema",
    "fetch_parameters",
    "make_keys",
    "read_perturbed_windows",
    "recipients",
    "revoke",
    "run_demo",
    "run_party",
    "send_stream",
    "sign_parameters",
    "verify_parameters",
]
