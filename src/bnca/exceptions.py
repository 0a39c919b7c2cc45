"""Warnings and errors that a caller may want to tell apart."""

from __future__ import annotations


class NeighborhoodWarning(UserWarning):
    """A neighbourhood had to be smaller than asked for."""


class ProjectionWarning(UserWarning):
    """A posterior mean had negative weights and was projected to become a metric."""


class InputError(ValueError):
    """What a person gave cannot be used; the message says what it was and what would do."""
