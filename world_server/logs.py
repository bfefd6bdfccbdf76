"""Logging to standard error without secrets and without lines that strangers can forge."""

from __future__ import annotations

import logging
import logging.config
import re

_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029]")
_SECRETS = (
    (re.compile(r"(?i)\b(api_?key|key|token|secret|password)=[^&\s\"']+"), r"\1=***"),
    (re.compile(r"(?i)\b(bearer) [^\s\"',]+"), r"\1 ***"),
    (re.compile(r"(?i)(x-api-key[\"']?[:,] ?[\"']?)[^\s\"',]+"), r"\1***"),
    (re.compile(r"//[^/\s@?#]{1,400}@"), "//***@"),
)


class SafeFormatter(logging.Formatter):
    """Writes one line a record: secrets cut, control characters shown as escapes.

    Only a traceback, which is ours, may span lines.
    """

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        """Return the line without its traceback."""
        return safe(super().formatMessage(record)).replace("\n", "\\n")

    def formatException(self, ei: object) -> str:  # noqa: N802 - logging's name
        """Return the traceback; what strangers wrote into it is made safe as well."""
        return safe(super().formatException(ei))  # type: ignore[arg-type]  # passed through


def safe(text: str) -> str:
    """Return the text with secrets cut out and control characters but newlines escaped."""
    for pattern, replacement in _SECRETS:
        text = pattern.sub(replacement, text)
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def configure(level: str) -> None:
    """Send the logs of the server and of uvicorn to standard error, from ``level`` up."""
    logging.config.dictConfig(
        {
            "version": 1,
            "disable_existing_loggers": False,
            "formatters": {
                "line": {
                    "()": "world_server.logs.SafeFormatter",
                    "format": "%(asctime)s %(levelname)s %(name)s %(message)s",
                }
            },
            "handlers": {
                "stderr": {
                    "class": "logging.StreamHandler",
                    "stream": "ext://sys.stderr",
                    "formatter": "line",
                }
            },
            "loggers": {
                "world_server": {
                    "level": level.upper(),
                    "handlers": ["stderr"],
                    "propagate": False,
                },
                "uvicorn": {"level": "WARNING", "handlers": ["stderr"], "propagate": False},
            },
        }
    )
