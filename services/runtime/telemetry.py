"""Logs: one event a line, JSON unless a person looks on."""

import logging
import sys
from collections.abc import MutableMapping
from typing import Any, TextIO

import structlog

__all__ = ["configure_logs", "get_logger"]


def configure_logs(service: str, *, level: str = "info", form: str = "auto", stream: TextIO | None = None) -> None:
    """Send all logs of this process to `stream` (default stderr), each with the name of its service.

    `form`: ``json``, ``text``, or ``auto``: text on a terminal, else JSON.
    """
    out = stream or sys.stderr
    is_text = form == "text" or (form == "auto" and out.isatty())

    def name_service(logger: Any, method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        return {"service": service, **event}

    shared: list[Any] = [
        name_service,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=not is_text),
        structlog.processors.format_exc_info,
    ]
    renderer: Any = structlog.processors.JSONRenderer()
    if is_text:
        # Without the values of all variables, which may be large, and secrets.
        plain = structlog.dev.plain_traceback
        renderer = structlog.dev.ConsoleRenderer(colors=out.isatty(), exception_formatter=plain)
        shared.pop()
    structlog.configure(
        processors=[*shared, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.PrintLoggerFactory(out),
        cache_logger_on_first_use=False,
    )


def get_logger(**bound: object) -> Any:
    """Return a logger; event names are those of the service's events.py."""
    return structlog.get_logger(**bound)
