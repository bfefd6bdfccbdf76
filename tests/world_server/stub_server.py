"""Serves the stub engine as a process: for load checks and for tests of signals and sockets."""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys

from tests.world_server.stub import StubEngine, served
from world_server import logs
from world_server.app import create_app
from world_server.serving import bind, listen, run_app
from world_server.settings import load
from world_server.worlds import Worlds


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--delay", type=float, default=0.05)
    options = parser.parse_args()
    settings = load({}, os.environ)
    logs.configure(settings.log_level)
    bound = bind(settings)
    settings = dataclasses.replace(settings, port=bound.getsockname()[1])
    app = create_app(Worlds.of(served(engine=StubEngine(options.delay))), settings)
    sys.stdout.write(f"Serving stub on {listen(bound)}\n")
    sys.stdout.flush()
    return run_app(app, settings, bound)


if __name__ == "__main__":
    sys.exit(main())
