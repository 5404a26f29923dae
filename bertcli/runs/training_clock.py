"""The seconds of training, without evaluations and saving."""

from __future__ import annotations

import time

from bertcli.checkpoints.checkpoint import RunState


class TrainingClock:
    """Continues the run's count of training seconds; speeds are those since the last row of the log."""

    def __init__(self, state: RunState):
        self._now = time.perf_counter()
        self._started, self._logged = self._now - state.seconds, self._now
        self._tokens_logged = state.tokens

    def read(self) -> float:
        """Seconds of training until now."""
        self._now = time.perf_counter()
        return self._now - self._started

    def tokens_per_second(self, tokens: int) -> float:
        """Until the last `read`, when the run had read `tokens` tokens."""
        return (tokens - self._tokens_logged) / (self._now - self._logged)

    def mark_logged(self, tokens: int) -> None:
        """A row of the log was written for the last `read`."""
        self._tokens_logged, self._logged = tokens, self._now

    def leave_out(self) -> None:
        """Exclude the time since the last `read`."""
        pause = time.perf_counter() - self._now
        self._started, self._logged = self._started + pause, self._logged + pause
