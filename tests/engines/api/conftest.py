from __future__ import annotations

from collections.abc import Iterator

import pytest

from .fault_server import FaultServer


@pytest.fixture(scope="module")
def module_service() -> Iterator[FaultServer]:
    with FaultServer({}) as server:
        yield server


@pytest.fixture
def service(module_service: FaultServer) -> FaultServer:
    """A server to which tests add scenarios; its recorded requests are those of the test."""
    module_service.seen.clear()
    module_service.headers.clear()
    return module_service
