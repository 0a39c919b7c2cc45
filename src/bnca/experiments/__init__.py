"""Experiments as data: what is compared, on what, how it is tuned and scored."""
