"""Context managers that silence the progress bars, warnings and logs of other libraries."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager


class _Collector(logging.Handler):
    """Collects logged warnings, each on one line."""

    def __init__(self, messages: list[str]) -> None:
        super().__init__(logging.WARNING)
        self._messages = messages

    def emit(self, record: logging.LogRecord) -> None:
        self._messages.append(" ".join(record.getMessage().split()))


@contextmanager
def quiet() -> Iterator[list[str]]:
    """Silences Transformers, and collects the warnings that it logs.

    Its progress bars and every ``FutureWarning`` are silenced, too.
    """
    from transformers.utils import logging as transformers_logging

    logger, messages = logging.getLogger("transformers"), list[str]()
    handlers, propagate = logger.handlers, logger.propagate
    bars = transformers_logging.is_progress_bar_enabled()
    logger.handlers, logger.propagate = [_Collector(messages)], False
    transformers_logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            yield messages
    finally:
        logger.handlers, logger.propagate = handlers, propagate
        if bars:
            transformers_logging.enable_progress_bar()


@contextmanager
def no_request_logs(*packages: str) -> Iterator[None]:
    """Keeps requests and responses out of the logs, regardless of the user's log levels.

    Below the level of warnings, an SDK logs whole requests, dialogues included, and an HTTP client
    logs the headers of responses, in which a service may repeat a key.

    Args:
        *packages: Packages whose loggers, with their child loggers, log only warnings and errors.
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
