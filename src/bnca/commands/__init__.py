"""Commands: each module has `add_parser(commands)` and `run(options) -> int`."""
