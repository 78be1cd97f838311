"""The answers to commands: one for each, a reply or why it is refused."""

from collections.abc import Callable

from exacta.core.rejections import Rejection
from exacta.core.replies import Reply

Answer = Reply | Rejection
OnAnswers = Callable[[list[Answer]], None]
"""Takes one answer for each command, in their order."""
