"""Keeps other libraries' bars, notices and logs to themselves, for the time of a block."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager


class _Collector(logging.Handler):
    """Keeps the warnings that it is given, each on one line."""

    def __init__(self, said: list[str]) -> None:
        super().__init__(logging.WARNING)
        self._said = said

    def emit(self, record: logging.LogRecord) -> None:
        self._said.append(" ".join(record.getMessage().split()))


@contextmanager
def quiet() -> Iterator[list[str]]:
    """Silences Transformers, and collects the warnings that it logs.

    Progress bars, and what is said of the next version of a library, are silenced, too.
    """
    from transformers.utils import logging as transformers_logging

    logger, said = logging.getLogger("transformers"), list[str]()
    handlers, propagate = logger.handlers, logger.propagate
    bars = transformers_logging.is_progress_bar_enabled()
    logger.handlers, logger.propagate = [_Collector(said)], False
    transformers_logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            yield said
    finally:
        logger.handlers, logger.propagate = handlers, propagate
        if bars:
            transformers_logging.enable_progress_bar()


@contextmanager
def unlogged(*packages: str) -> Iterator[None]:
    """Keeps what packages send and receive out of logs, whatever logs are switched on.

    Below warnings, an SDK logs whole requests, dialogues included, and an HTTP client logs
    the headers of responses, in which a service may repeat a key.

    Args:
        *packages: Packages whose loggers, and those below them, are held at warnings.
    """
    known = [name for name in logging.root.manager.loggerDict if name.partition(".")[0] in packages]
    loggers = [logging.getLogger(name) for name in {*packages, *known}]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(max(logger.level, logging.WARNING))
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
