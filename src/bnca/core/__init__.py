"""The method itself: arrays in, arrays out; no estimator, no printing, no file."""
