"""Where a stream comes from besides files and pipes, and who is told of its flags: brokers and hooks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from wallflower.cli.show import notice
from wallflower.data.lines import VALUE, Batch, FleetBatch, Stream
from wallflower.data.messages import MessageReader
from wallflower.errors import ParameterError
from wallflower.machine.hooks import Command, Hooks, Target, Webhook
from wallflower.machine.mqtt import Address, Inbox, Subscription, is_address


def require_feeds(given: Mapping[str, Any]) -> None:
    """Refuse what brokers and hooks need and nobody stated, before anything is read."""
    is_broker = is_address(given["source"])
    if is_broker:
        Address.parse(given["source"])
        if not given["json_lines"] and not given["fleet"]:
            raise ParameterError("mqtt://: a broker is a stream without an end. Add --json-lines, or --fleet.")
        for name, words in (("goes_on", "--continue"), ("first", "--from")):
            if given[name]:
                raise ParameterError(f"{words}: the inbox knows which messages were decided. Leave it out.")
    elif given["message_id"]:
        raise ParameterError("--message-id: identifies messages of a broker. Leave it out, or read from mqtt://.")
    wants = [words for words, is_given in _needs_checkpoint(given, is_broker) if is_given]
    if wants and not given["checkpoint"]:
        raise ParameterError(f"{wants[0]}: what is not handled yet is kept beside the checkpoint. Add --checkpoint.")
    if wants and "://" in str(given["checkpoint"]):
        raise ParameterError(f"{wants[0]}: needs a checkpoint that is a file, beside which it keeps one of its own.")
    _read_targets(given)


def _needs_checkpoint(given: Mapping[str, Any], is_broker: bool) -> Sequence[tuple[str, bool]]:
    return (("mqtt://", is_broker), ("--on-flag", bool(given["on_flag"])), ("--webhook", bool(given["webhook"])))


class Feed:
    """Observations of a broker, each message one of them."""

    def __init__(self, subscription: Subscription, inbox: Inbox) -> None:
        self._subscription, self._inbox = subscription, inbox

    def stream(self, names: Sequence[str] | None, time: str | None) -> Stream:
        """The observations of one stream; without names an entry is called `value`."""
        reader = MessageReader(tuple(names or (VALUE,)), time)
        return Stream(reader.columns, self._rows(reader), reader.oddities)

    def _rows(self, reader: MessageReader) -> Iterator[Batch]:
        for messages in self._subscription.batches():
            yield reader.batch(messages)

    def fleet_batches(self, columns: Sequence[str]) -> Iterator[FleetBatch]:
        """The observations of a fleet."""
        reader = MessageReader(tuple(columns))
        for messages in self._subscription.batches():
            yield reader.fleet_batch(messages)

    def first_number(self, charge: int, position: int) -> int:
        """The number, among the observations of this session, of the first message that was not handled."""
        return self._inbox.settled + 1 - self._inbox.number_for(str(charge), position)

    def settle(self, charge: int, position: int) -> None:
        """The observations of this session up to this one were decided: no later session sees them."""
        self._inbox.settle(position + self._inbox.number_for(str(charge), position))


@contextmanager
def open_feed(given: Mapping[str, Any]) -> Iterator[Feed | None]:
    """Connect to the broker that the source names; None where it is a file or a pipe."""
    if not is_address(given["source"]):
        yield None
        return
    address = Address.parse(given["source"])
    with Inbox(_beside(given, "inbox"), id_field=given["message_id"]) as inbox, Subscription(address, inbox) as source:
        notice(f"Connected to {address}, topic {address.topic}.")
        yield Feed(source, inbox)


def _read_targets(given: Mapping[str, Any]) -> list[Target]:
    command = [Command.parse(given["on_flag"])] if given["on_flag"] else []
    webhook = [Webhook.parse(given["webhook"])] if given["webhook"] else []
    return [*command, *webhook]


@contextmanager
def open_hooks(given: Mapping[str, Any]) -> Iterator[Hooks | None]:
    """Start the hooks that were named; None where there are none."""
    targets = _read_targets(given)
    if not targets:
        yield None
        return
    hooks = Hooks(_beside(given, "hooks"), targets)
    try:
        yield hooks
    finally:
        if waiting := hooks.close():
            notice(f"{waiting:,} notices of flags were not delivered; the same --checkpoint tries again.")


def _beside(given: Mapping[str, Any], what: str) -> Path:
    return Path(f"{given['checkpoint']}.{what}")
