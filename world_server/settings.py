"""Every setting of the server in one typed table: flag, environment, TOML file, default.

A flag wins over the environment (``WORLD_`` and the name in capitals), that over the TOML file,
that over the default. The command line, ``world-server settings`` and ``docs/settings.md`` are made
from this table.
"""

from __future__ import annotations

import dataclasses
import json
import math
import tomllib
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from world_server.errors import SettingsError

ENV_PREFIX = "WORLD_"
CONFIG_ENV = "WORLD_CONFIG"

_TRUE = frozenset({"1", "true", "yes", "on"})
_FALSE = frozenset({"0", "false", "no", "off"})
_RULES = (
    f"A flag wins over the environment, that over the TOML file (`--config FILE` or `{CONFIG_ENV}`)"
    ", that over the default. Lists are separated by commas in the environment. Secrets have no"
    " flag, since a command line can be read by others. `world-server settings` prints the values"
    " in force."
)
_HINT = "List all settings with: world-server settings."


def _setting(
    default: Any,  # noqa: ANN401 - one helper for every type of setting
    meaning: str,
    *,
    low: float | None = None,
    high: float | None = None,
    secret: bool = False,
) -> Any:  # noqa: ANN401 - a dataclass field stands in for its type
    """Return a dataclass field that carries the row of the table."""
    return dataclasses.field(
        default=default,
        repr=not secret,
        metadata={"meaning": meaning, "low": low, "high": high, "secret": secret},
    )


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of one server; immutable, its ``repr`` hides secrets.

    Raises:
        SettingsError: a value is out of range.
    """

    worlds: tuple[str, ...] = _setting(
        (), "Folders of the worlds to serve; the first is met by plain requests."
    )
    host: str = _setting("127.0.0.1", "Address to listen on.")
    port: int = _setting(8000, "Port to listen on; 0 takes a free one.", low=0, high=65535)
    workers: int = _setting(
        1, "Processes that answer HTTP; see `engine` for who opens the worlds.", low=1, high=256
    )
    engine: str = _setting(
        "auto",
        "Where the worlds are open: `process` (one engine process for all workers), `local` (in"
        " every worker) or `auto`, which is local with one worker and process with several.",
    )
    engine_threads: int = _setting(
        4, "Searches and fetches at work at once, for each world and engine.", low=1, high=256
    )
    encoder_threads: int = _setting(1, "Threads of the encoder within one batch.", low=1, high=64)
    encoder_process: str = _setting(
        "auto",
        "Whether the encoder has a process of its own, which is started again when it ends or"
        " stands still: `always`, `never`, or `auto`, which is always for `flag` (a fault of the"
        " GPU spoils a whole process, and torch keeps its interpreter busy) and never for the"
        " kinds that run in native code on the CPU (one copy, no way between processes).",
    )
    query_cache_mb: int = _setting(
        64,
        "Query vectors that are remembered, in MiB for each encoder; 0 remembers none.",
        low=0,
        high=1 << 20,
    )
    batch_limit: int = _setting(32, "Queries encoded together at most.", low=1, high=4096)
    batch_wait_ms: float = _setting(
        0.0,
        "Milliseconds an idle encoder waits for more queries to encode together.",
        low=0.0,
        high=1000.0,
    )
    dense_device: str = _setting(
        "auto",
        "Where dense indexes are searched: cpu, cuda (torch), faiss-gpu, or auto (cuda if there "
        "is a GPU).",
    )
    reranker: str = _setting(
        "",
        "What orders the first pages of hybrid searches anew: KIND or KIND:MODEL, such as"
        " flag:BAAI/bge-reranker-v2-m3; the word none turns it off; empty takes what each world"
        " names.",
    )
    rerank_top: int = _setting(
        0, "Pages the reranker orders anew; 0 takes the world's number, or 20.", low=0, high=200
    )
    max_running: int = _setting(
        0, "Calls let in at once for each process; 0 means eight times engine_threads.", low=0
    )
    queue_limit: int = _setting(
        8192, "Calls that may wait for each process; one more is refused at once with 503.", low=0
    )
    wait_s: float = _setting(
        10.0, "Seconds a call waits for its turn; then 503 with Retry-After.", low=0.0
    )
    work_s: float = _setting(20.0, "Seconds a call may be at work; then 504.", low=0.001)
    body_limit: int = _setting(1 << 20, "Largest request body in bytes; more is 413.", low=1)
    body_s: float = _setting(30.0, "Seconds in which a request body must arrive.", low=0.001)
    head_limit: int = _setting(
        131072, "Largest request line and headers in bytes; more is 431.", low=1024
    )
    head_s: float = _setting(
        10.0, "Seconds in which the request line and headers must arrive.", low=0.001
    )
    keep_alive_s: int = _setting(
        30, "Seconds an idle connection is kept; clients should let go earlier.", low=1
    )
    graceful_s: int = _setting(
        30, "Seconds that running calls have to finish after SIGTERM.", low=1
    )
    verify: bool = _setting(
        default=True, meaning="Check every file of a world against its digest before it is served."
    )
    plan_check: bool = _setting(
        default=True, meaning="Refuse worlds that need more memory than this machine has free."
    )
    watch_s: float = _setting(
        1.0, "Seconds between looks at the file `current` of a world folder.", low=0.01
    )
    ready_s: float = _setting(
        10.0, "Seconds for which the answer of the canary queries holds.", low=0.01
    )
    ready_deadline_s: float = _setting(
        5.0, "Seconds in which the canary queries must be answered.", low=0.001
    )
    keys: tuple[str, ...] = _setting(
        (), "Keys that open the service; none: any key, or no key, is good.", secret=True
    )
    keys_file: str = _setting(
        "", "File with keys, one a line, plain or as sha256:HEX; read again when it changes."
    )
    control_key: str = _setting(
        "", "Key that opens the control routes; none: they are closed.", secret=True
    )
    allow_no_key: bool = _setting(
        default=False, meaning="Serve on an address other than loopback without a key."
    )
    cors_origins: tuple[str, ...] = _setting(
        (), "Origins whose browser pages may call the service; never *."
    )
    log_level: str = _setting("info", "debug, info, warning or error.")

    def __post_init__(self) -> None:
        for row in dataclasses.fields(self):
            value = getattr(self, row.name)
            low, high = row.metadata["low"], row.metadata["high"]
            # Written so that NaN is out of every range.
            fits = (low is None or value >= low) and (high is None or value <= high)
            if not fits or value == math.inf:
                wanted = f"at least {low}" if high is None else f"between {low} and {high}"
                raise SettingsError(f"{row.name} is {value}, but must be {wanted}.", hint=_HINT)
        if self.log_level not in ("debug", "info", "warning", "error"):
            raise SettingsError(f"log_level is {self.log_level!r}.", hint=_HINT)
        if self.encoder_process not in ("auto", "always", "never"):
            raise SettingsError(
                f"encoder_process is {self.encoder_process!r}.", hint="Use auto, always or never."
            )
        if self.engine not in ("auto", "local", "process"):
            raise SettingsError(f"engine is {self.engine!r}.", hint=_HINT)
        if self.dense_device not in ("auto", "cpu", "cuda", "faiss-gpu"):
            raise SettingsError(
                f"dense_device is {self.dense_device!r}.", hint="Use auto, cpu, cuda or faiss-gpu."
            )
        if "*" in self.cors_origins:
            raise SettingsError(
                "cors_origins holds '*'.", hint="Name each origin, such as http://localhost:3000."
            )

    @property
    def has_engine_process(self) -> bool:
        """True when the worlds are open in one engine process, not in each worker."""
        return self.engine == "process" or (self.engine == "auto" and self.workers > 1)

    @property
    def running_limit(self) -> int:
        """Calls let in at once: ``max_running``, or eight times the engine's threads.

        More than the threads, so that one that ends a call finds the next one waiting, and so that
        the queries of those that wait can be encoded together.
        """
        return self.max_running or 8 * self.engine_threads

    def to_environment(self) -> dict[str, str]:
        """Return the environment from which ``load`` makes these settings again."""
        found = {}
        for row in dataclasses.fields(self):
            value = getattr(self, row.name)
            if value != row.default:
                # JSON, since a folder's name may hold a comma.
                text = json.dumps(value) if isinstance(value, tuple) else str(value)
                found[ENV_PREFIX + row.name.upper()] = text
        return found


@dataclass(frozen=True, slots=True)
class Row:
    """One setting as it is documented."""

    name: str
    flag: str
    environment: str
    kind: str
    default: str
    meaning: str


def load(
    flags: Mapping[str, object], environment: Mapping[str, str], config: Path | None = None
) -> Settings:
    """Return the settings from flags, environment, TOML file and defaults, in this order.

    Args:
        flags: values by name; ``None`` stands for a flag that was not given.
        environment: the process environment; only names with the prefix are looked at.
        config: the TOML file; the one named by ``WORLD_CONFIG`` if ``None``.

    Raises:
        SettingsError: a value is not of its type or range, the file cannot be read, or it has a
            key that is no setting.
    """
    kinds = _kinds()
    values: dict[str, object] = {}
    source = config or (Path(environment[CONFIG_ENV]) if environment.get(CONFIG_ENV) else None)
    if source is not None:
        for name, value in _read_toml(source).items():
            if name not in kinds:
                raise SettingsError(f"{source} sets {name!r}, which is no setting.", hint=_HINT)
            values[name] = _checked(f"{name} in {source}", value, kinds[name])
    for name, kind in kinds.items():
        variable = ENV_PREFIX + name.upper()
        if variable in environment:
            values[name] = _parsed(variable, environment[variable], kind)
    for name, value in flags.items():
        if value is not None and name in kinds:
            values[name] = _checked(f"--{name.replace('_', '-')}", value, kinds[name])
    return Settings(**values)  # type: ignore[arg-type]  # checked against the same table above


def table() -> list[Row]:
    """Return the documented rows of all settings, in the order of the table."""
    kinds = _kinds()
    rows = []
    for row in dataclasses.fields(Settings):
        flag = "--" + row.name.replace("_", "-")
        if row.metadata["secret"]:
            flag = ""
        elif row.name == "worlds":
            flag = "WORLD..."
        rows.append(
            Row(
                name=row.name,
                flag=flag,
                environment=ENV_PREFIX + row.name.upper(),
                kind="list" if kinds[row.name] is tuple else kinds[row.name].__name__,
                default=",".join(row.default)
                if isinstance(row.default, tuple)
                else str(row.default),
                meaning=row.metadata["meaning"],
            )
        )
    return rows


def as_markdown() -> str:
    """Return ``docs/settings.md``: the table with its rules."""
    lines = [
        "# Settings of the world server",
        "",
        _RULES,
        "",
        "| setting | flag | environment | type | default | meaning |",
        "|---|---|---|---|---|---|",
    ]
    for row in table():
        flag = f"`{row.flag}`" if row.flag else ""
        default = f"`{row.default}`" if row.default else ""
        lines.append(
            f"| `{row.name}` | {flag} | `{row.environment}` | {row.kind} | {default} "
            f"| {row.meaning} |"
        )
    return "\n".join(lines) + "\n"


def _kinds() -> dict[str, type]:
    """Return the plain type of each setting: str, int, float, bool or tuple."""
    hints = typing.get_type_hints(Settings)
    return {
        row.name: typing.get_origin(hints[row.name]) or hints[row.name]
        for row in dataclasses.fields(Settings)
    }


def _read_toml(path: Path) -> dict[str, object]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise SettingsError(f"{path} cannot be read ({error.strerror}).", hint=_HINT) from error
    except ValueError as error:
        raise SettingsError(f"{path} is not TOML: {error}.", hint=_HINT) from error


def _checked(place: str, value: object, kind: type) -> object:
    """Return the value if it has the type of its setting; a whole number may stand for a float."""
    if kind is float and type(value) is int:
        return float(value)
    if kind is tuple and isinstance(value, list | tuple):
        items = tuple(value)
        if all(isinstance(item, str) for item in items):
            return items
    elif type(value) is kind:
        return value
    raise SettingsError(f"{place} is {value!r}, which is no {kind.__name__}.", hint=_HINT)


def _parsed(variable: str, text: str, kind: type) -> object:
    """Return the value that a text of the environment stands for."""
    text = text.strip()
    if kind is tuple:
        if text.startswith('["'):
            return _json_list(variable, text)
        return tuple(part.strip() for part in text.split(",") if part.strip())
    if kind is bool:
        if text.lower() in _TRUE | _FALSE:
            return text.lower() in _TRUE
    elif kind is str:
        return text
    else:
        try:
            return kind(text)
        except ValueError:
            pass
    raise SettingsError(f"{variable} is {text!r}, which is no {kind.__name__}.", hint=_HINT)


def _json_list(variable: str, text: str) -> tuple[str, ...]:
    """Return the texts of a JSON array, as ``to_environment`` writes it."""
    try:
        items = json.loads(text)
    except ValueError:
        items = None
    if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
        # Not shown: it may hold keys.
        raise SettingsError(f"{variable} is no JSON array of texts.", hint=_HINT)
    return tuple(items)
