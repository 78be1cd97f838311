"""Choose who is killed when: clients all the time, the broker now and then.

This module owns the draws. Theory of operation: two clocks run, one for clients and one for the broker, each with drawn
intervals. A fault of the broker also waits until something was committed since the one before, so that a cluster that
is slow to come back is not killed again before it did any work.
"""

import os
import random
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from exacta.client.errors import ClientError
from exacta.posix import SIGKILL
from exacta.verify.campaign.cluster import Watcher
from exacta.verify.campaign.settings import CampaignError, CampaignSettings
from exacta.verify.history import BROKER_KILLED, BROKER_RESTARTED, RESTART_COMMAND, Fault, Outcome

_COMMAND_WITHIN_S = 300.0
_COMMITS_BETWEEN = 5


class Faults(Protocol):
    """Faults that are done to a cluster."""

    @property
    def possible(self) -> bool:
        """Return whether there is anything to do."""
        ...

    def strike(self) -> list[Fault]:
        """Do one, and return when the cluster is back; raises `CampaignError` where it does not come."""
        ...


class BrokerFaults:
    """Kills and restarts the broker as the settings say."""

    def __init__(self, settings: CampaignSettings, watcher: Watcher) -> None:
        self._settings = settings
        self._watcher = watcher
        self._killed: int | None = None

    @property
    def possible(self) -> bool:
        """Return whether there is anything to do."""
        return self._settings.restart_command is not None or self._settings.kill is not None

    def strike(self) -> list[Fault]:
        """Do it once, and wait until the cluster is back; raises `CampaignError` where it does not come."""
        faults = []
        if self._settings.kill is not None:
            faults.append(self._kill(self._settings.kill))
        if self._settings.restart_command is not None:
            faults.append(self._restart(self._settings.restart_command))
        try:
            self._watcher.answers()
        except ClientError as error:
            raise CampaignError(f"the cluster did not come back: {error}") from error
        return faults

    def _kill(self, target: str) -> Fault:
        start_us = self._watcher.now_us()
        error = ""
        try:
            pid = process_id(target)
            if pid == self._killed:
                error = "it has been killed before, and its successor is not known: give a file with its process id"
            else:
                os.kill(pid, SIGKILL)
                self._killed = pid
        except (OSError, ValueError) as raised:
            error = str(raised)
        outcome = Outcome.FAIL if error else Outcome.OK
        end_us = self._watcher.now_us()
        return Fault(kind=BROKER_KILLED, target=target, start_us=start_us, end_us=end_us, outcome=outcome, error=error)

    def _restart(self, command: str) -> Fault:
        start_us = self._watcher.now_us()
        with (self._settings.directory / "restart-command.log").open("ab") as log:
            try:
                # What it leaves running in the background keeps the log open, not us.
                code = subprocess.run(
                    command,
                    shell=True,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    timeout=_COMMAND_WITHIN_S,
                    check=False,
                ).returncode
            except subprocess.TimeoutExpired as error:
                raise CampaignError(f"the restart command did not end within {_COMMAND_WITHIN_S:.0f} s") from error
        if code:
            raise CampaignError(f"the restart command ended with exit code {code}; see {log.name}")
        kind = BROKER_RESTARTED if self._settings.kill is None else RESTART_COMMAND
        return Fault(kind=kind, target=command, start_us=start_us, end_us=self._watcher.now_us())


def process_id(target: str) -> int:
    """Return the process that is meant: a number, or a file that has one; raises OSError and ValueError."""
    text = target if target.isdigit() else Path(target).read_text().strip()
    if not text.isdigit() or int(text) <= 1:
        raise ValueError(f"{target} names no process to kill: '{text}'")
    return int(text)


class Clock:
    """A clock that tells when the next fault is due."""

    def __init__(self, every_s: float, chance: random.Random, commits: Callable[[], int]) -> None:
        """Begin; `every_s` is the mean interval, 0 for never; `commits` counts what was committed so far."""
        self._every_s = every_s
        self._chance = chance
        self._commits = commits
        self.again()

    def again(self) -> None:
        """Draw the next interval, from now."""
        self._due_s = time.monotonic() + self._every_s * self._chance.uniform(0.5, 1.5)
        self._after = self._commits() + _COMMITS_BETWEEN

    @property
    def due(self) -> bool:
        """Return whether the fault is due."""
        return self._every_s > 0 and time.monotonic() >= self._due_s and self._commits() >= self._after
