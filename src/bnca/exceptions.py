"""Warnings that a caller may want to silence or turn into errors one by one."""

from __future__ import annotations


class NeighborhoodWarning(UserWarning):
    """A neighbourhood had to be smaller than asked for."""


class ProjectionWarning(UserWarning):
    """A posterior mean had negative weights and was projected to become a metric."""
