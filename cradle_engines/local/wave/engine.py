"""The wave engine: runs many dialogues in one batch, and computes shared tokens only once.

A prompt consists of an instruction that never changes, a history that grows, and a short current
turn. The reference engine computes all of it for every turn. This one computes the instruction
once for the whole run, caches each dialogue's keys and values, and computes only the tokens after
the first difference to the dialogue's last prompt (see ``runner``). In float32 the labels equal
those of the reference engine. With sampling they can differ in rare cases: logits are rounded
differently in another batch, whose size depends on the free memory, and a draw between two tokens
may be decided by that. ``--set batch=N`` fixes the size.

When a model is loaded, :mod:`.proof` compares the engine with the model's own forward pass. If they
differ, the reference engine answers, and the record says why (``fallback``).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from cradle_engines.local.local_engine import LocalEngine
from cradle_engines.local.reference import Reference
from cradle_lib.detection.models.engine import Emit, Questions, failure
from cradle_lib.errors import CradleError, EngineError

if TYPE_CHECKING:
    import torch

LARGEST_WAVE: Final = 96


class Wave(LocalEngine):
    """Runs many dialogues in one batch; see :class:`.LocalEngine` for its arguments."""

    uses = Reference.uses | {"mode"}

    def answer_all(self, sessions: Iterable[Questions], emit: Emit) -> None:
        """Asks every session's prompts until all are finished.

        Raises:
            EngineError: If the weights can't be loaded, or memory runs out even for one
                dialogue at a time.
        """
        unfinished = [session for session in sessions if session.prompt is not None]
        # The longest dialogues begin first, so that only short ones are left at the end.
        waiting = deque(sorted(unfinished, key=lambda session: -session.remaining))
        if not waiting:
            return
        token_sizes = self._prove()
        if token_sizes is not None:
            self._run(waiting, emit, token_sizes)
            return
        if self._local.decoding.mode == "constrained":
            raise EngineError(
                f"{self._model.name}: {self.fallback}, and no other engine has "
                "`mode: constrained`. Leave `mode` out of `decoding`."
            )
        self._options.notice(f"{self._model.name}: {self.fallback}; asking one question at a time")
        Reference(self._model, self._options, self._local).answer_all(waiting, emit)

    def _prove(self) -> Mapping[torch.device, int] | None:
        """Checks that this engine computes what the reference engine does, or sets the fallback.

        Returns:
            As :func:`.prove`; ``None`` with a fallback.

        Raises:
            EngineError: If memory runs out.
        """
        from cradle_engines.local.devices import is_out_of_memory
        from cradle_engines.local.wave.attention import UnsupportedAttentionError
        from cradle_engines.local.wave.proof import prove

        others = sorted(self._local.settings.keys() - {"temperature"})
        if others:
            self.fallback = f"the wave engine can't apply {', '.join(others)}"
        if self.fallback is not None:
            return None
        try:
            return prove(self._local)
        except UnsupportedAttentionError as error:
            self.fallback = str(error)
            return None
        except Exception as error:
            if is_out_of_memory(error):
                raise self._out_of_memory() from error
            raise

    def _out_of_memory(self) -> EngineError:
        return EngineError(
            f"{self._model.name}: memory ran out with one dialogue at a time. The answers so far "
            "are kept; go on with another --set device=NAME, or with --set device_map=auto."
        )

    def _run(
        self, waiting: deque[Questions], emit: Emit, token_sizes: Mapping[torch.device, int]
    ) -> None:
        """Runs the dialogues in batches, which become smaller if memory runs out.

        Raises:
            EngineError: If memory runs out for one dialogue.
        """
        import torch

        from cradle_engines.local.devices import is_out_of_memory
        from cradle_engines.local.wave.runner import Runner

        local = self._local
        affordable = self._options.batch or affordable_size(waiting, token_sizes)
        largest = size = min(affordable, len(waiting))
        with torch.inference_mode():
            while waiting:
                try:
                    Runner(local, size, waiting, emit).run()
                    return
                except CradleError:
                    raise
                except Exception as error:
                    if is_out_of_memory(error):
                        if size == 1:
                            raise self._out_of_memory() from error
                        largest = size = size // 2
                        continue
                    # In a batch of one, the first waiting question has raised the exception.
                    if size == 1 and waiting[0].prompt is not None:
                        emit(waiting[0].answer(failure(error.with_traceback(None))))
                    if waiting[0].prompt is None:
                        waiting.popleft()
                    # Go on with batches of one until the question that raises it has failed.
                    size = 1 if size > 1 else largest


def affordable_size(waiting: Iterable[Questions], token_sizes: Mapping[torch.device, int]) -> int:
    """Chooses the batch size: keys and values may take half of the free memory of each device.

    Args:
        waiting: The dialogues.
        token_sizes: The size in bytes of one token's keys and values on each device.
    """
    from cradle_engines.local.devices import free_memory

    # An estimate: the text so far, and two turns of 60 tokens for each remaining question.
    tokens = 256 + max(
        len(session.prompt.history) // 4 + session.remaining * 2 * 60
        for session in waiting
        if session.prompt is not None
    )
    fitting = (free_memory(device) // 2 // (tokens * size) for device, size in token_sizes.items())
    return max(1, min(LARGEST_WAVE, *fitting))
