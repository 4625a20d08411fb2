"""Calls go out one by one."""

from __future__ import annotations

import asyncio

from cradle_lib.detection.engines.gate import Gate


def test_calls_that_come_back_together_go_out_one_by_one() -> None:
    async def watch() -> list[str]:
        gate, seen = Gate(3), list[str]()
        loop = asyncio.get_running_loop()
        gate.leave(await gate.enter(0) or 0, answered=True)

        async def call(name: int) -> None:
            assert await gate.enter(name) is not None
            seen.append(f"make {name}")
            # A connection sends in the loop's next step.
            loop.call_soon(seen.append, f"send {name}")

        await asyncio.gather(*(call(name) for name in (1, 2, 3)))
        await asyncio.sleep(0)
        return seen

    expected = [f"{what} {name}" for name in (1, 2, 3) for what in ("make", "send")]
    assert asyncio.run(watch()) == expected
