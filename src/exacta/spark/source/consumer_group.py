"""Tell a consumer group how far a query has come, so that ordinary lag tools see it.

This module owns the moment of each commit. A commit that fails harms nothing, because the query relies on its
checkpoint and never reads the group. The option is called `commit.group.id` and not `kafka.group.id`, which users of
Spark's connector know: there it names a group that the query is a member of and never commits to. A job that sets it
for the sake of an access rule, and shares it with a consumer that does commit, would here set that consumer's offsets
without having asked for it.
"""

import logging
import time
from typing import Final

from exacta.client.errors import ClientError
from exacta.client.group_offsets import commit_offsets
from exacta.client.routing import Client
from exacta.spark.source.planning import Positions

logger = logging.getLogger("exacta.spark")

_PATIENCE_MS: Final = 2_000.0
"""A micro-batch does not wait longer than this for the commit."""
_PAUSE_S: Final = 30.0
"""After a failure, no micro-batch waits for a commit during this time."""


class GroupOffsets:
    """The offsets of one group; belongs to the driver's process."""

    def __init__(self, group: str) -> None:
        self._group = group
        self._position: Positions = {}
        self._committed: Positions = {}
        self._not_before_s = float("-inf")
        self._failing = False

    def reached(self, client: Client, position: Positions) -> None:
        """Commit a position: all that is before it is finished.

        If that fails, the method only logs it, once until it succeeds.
        """
        self._position = dict(position)
        if time.monotonic() >= self._not_before_s:
            self._commit(client)

    def last_try(self, client: Client) -> None:
        """Commit what a failure has left uncommitted."""
        self._commit(client)

    def _commit(self, client: Client) -> None:
        if self._position == self._committed:
            return
        try:
            commit_offsets(client, self._group, self._position, deadline=client.deadline(_PATIENCE_MS))
        except ClientError as error:
            self._not_before_s = time.monotonic() + _PAUSE_S
            if not self._failing:
                logger.warning(
                    "the offsets of finished batches could not be committed to group '%s', so lag tools do not see "
                    "them; the query is not affected, and it is tried again: %s",
                    self._group,
                    error,
                )
            self._failing = True
        else:
            if self._failing:
                logger.warning("the offsets of finished batches are committed to group '%s' again", self._group)
            self._committed, self._failing = self._position, False
