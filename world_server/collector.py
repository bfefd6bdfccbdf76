"""The garbage collector of a process that serves."""

from __future__ import annotations

import gc


def calm_collector() -> None:
    """Let the garbage collector pass over what was loaded, and look less often at the rest.

    Requests leave few cycles behind, yet thousands of waiting ones made every full collection long:
    a quarter of the time, and most of the longest answers, went into it.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
