"""The chosen ways of voting, learned from all rows, and what they say together."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bnca.blocks import cut, map_runs, thread_count
from bnca.core import smoothing
from bnca.selection import in_parallel, metric_map
from bnca.votes import Voice, votes_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bnca.core.arrays import Doubles
    from bnca.learning import Learning
    from bnca.selection import Choice, Start
    from bnca.votes import Rows, Votes

BLOCK_NUMBERS = 1 << 19
"""Distances held by a thread for one block of queries."""


class Speaker(NamedTuple):
    """A voice, and how much it is listened to at each of its temperatures."""

    voice: Voice
    shares: tuple[float, ...]
    temperatures: tuple[float, ...]


class Ensemble(NamedTuple):
    """Voices by metric.

    Attributes
    ----------
    maps : tuple of (q, r) float64
        L of each metric.
    speakers : tuple of tuple of Speaker
        Who votes in it.
    n_classes : int
        Number of classes.
    """

    maps: tuple[Doubles, ...]
    speakers: tuple[tuple[Speaker, ...], ...]
    n_classes: int

    def probabilities(self, coordinates: Doubles, n_jobs: int | None = None) -> Doubles:
        """P(true class) of rows, (n, C), a block of rows at a time."""
        out = np.zeros((len(coordinates), self.n_classes))

        def work(run: Sequence[slice]) -> None:
            for part in run:
                for L, speakers in zip(self.maps, self.speakers, strict=True):
                    out[part] += _speak(coordinates[part] @ L, speakers)

        widest = max(len(s.voice.points) for speakers in self.speakers for s in speakers)
        map_runs(work, cut(len(out), max(1, BLOCK_NUMBERS // widest)), n_jobs)
        return np.asarray(out / out.sum(axis=1, keepdims=True))


def gather(rows: Rows, choice: Choice, how: Learning) -> Ensemble:
    """Let the chosen ways learn from all rows."""
    starts = list(dict.fromkeys(way.start for way in choice.ways))
    out: dict[Start, tuple[Doubles, tuple[Speaker, ...]]] = {}

    def work(start: Start) -> None:
        L = metric_map(rows, start, replace(how, n_jobs=1))
        out[start] = L, _speakers(start, choice, votes_of(rows, L))

    in_parallel(work, starts, thread_count(how.n_jobs))
    return Ensemble(
        tuple(out[start][0] for start in starts),
        tuple(out[start][1] for start in starts),
        rows.n_classes,
    )


def _speakers(start: Start, choice: Choice, votes: Votes) -> tuple[Speaker, ...]:
    out = []
    weighed = choice.weighed
    for way, shares, temperatures in zip(
        choice.ways, weighed.shares, weighed.temperatures, strict=True
    ):
        if way.start == start:
            some = shares > 0
            out.append(
                Speaker(
                    votes.voice(way.vote, way.doubt),
                    tuple(shares[some].tolist()),
                    tuple(temperatures[some].tolist()),
                )
            )
    return tuple(out)


def _speak(embedding: Doubles, speakers: tuple[Speaker, ...]) -> Doubles:
    """What the speakers in one metric add to the probabilities."""
    total = np.zeros((len(embedding), len(speakers[0].voice.offset)))
    points: Doubles | None = None
    for speaker in speakers:
        if speaker.voice.points is not points:
            points = speaker.voice.points
            squared = smoothing.squared_distances(embedding, points)
        votes = speaker.voice.say(squared)
        for share, temperature in zip(speaker.shares, speaker.temperatures, strict=True):
            total += share * smoothing.softmax(votes, temperature)
    return total
