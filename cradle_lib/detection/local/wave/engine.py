"""The wave engine: runs many dialogues in one batch, and computes shared tokens only once.

A prompt consists of an instruction that never changes, a history that grows, and a short current
turn. The reference engine computes all of it for every turn. This one computes the instruction
once for the whole run, caches each dialogue's keys and values, and computes only the tokens after
the first difference to the dialogue's last prompt (see ``runner``). In float32 the labels equal
those of the reference engine, also with sampling.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Final

from cradle_lib.detection.engine import Emit, Questions, failure
from cradle_lib.detection.local.local_engine import Local, LocalEngine
from cradle_lib.detection.local.reference import Reference
from cradle_lib.errors import CradleError, EngineError

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
        import torch

        from cradle_lib.detection.local.wave.attention import UnsupportedAttentionError
        from cradle_lib.detection.local.wave.runner import Runner

        name, local = self._model.name, self._local
        largest = size = min(self._options.batch or _affordable_size(local, waiting), len(waiting))
        others = sorted(local.settings.keys() - {"temperature"})
        problem = f"the wave engine can't apply {', '.join(others)}" if others else ""
        with torch.inference_mode():
            while waiting and not problem:
                try:
                    Runner(self._model, local, size, waiting, emit).run()
                    return
                except UnsupportedAttentionError as error:
                    if local.decoding.mode == "constrained":
                        raise EngineError(
                            f"{name}: {error} can't share a prefix, which `mode: constrained` "
                            "needs. Leave `mode` out of `decoding`."
                        ) from None
                    problem = f"{error} can't share a prefix"
                except (torch.OutOfMemoryError, MemoryError) as error:
                    if size == 1:
                        raise EngineError(
                            f"{name}: memory ran out with one dialogue at a time. The answers so "
                            "far are kept; go on with another --set device=NAME, or with "
                            "--set device_map=auto."
                        ) from error
                    largest = size = size // 2
                except CradleError:
                    raise
                except Exception as error:
                    # In a batch of one, the first waiting question has raised the exception.
                    if size == 1 and waiting[0].prompt is not None:
                        emit(waiting[0].answer(failure(error.with_traceback(None))))
                    if waiting[0].prompt is None:
                        waiting.popleft()
                    # Go on with batches of one until the question that raises it has failed.
                    size = 1 if size > 1 else largest
        if problem:
            self._options.notice(f"{name}: {problem}; asking one question at a time")
            Reference(self._model, self._options, local).answer_all(waiting, emit)


def _affordable_size(local: Local, waiting: Iterable[Questions]) -> int:
    """Chooses the batch size: keys and values may take at most half of the free memory."""
    import psutil
    import torch

    config = local.lm.config.get_text_config()
    queries = getattr(config, "num_attention_heads", None)
    if queries is None:
        # Models without attention, such as Mamba, can't share a prefix: the runner reports it.
        return 1
    heads = getattr(config, "num_key_value_heads", None) or queries
    size = getattr(config, "head_dim", None) or config.hidden_size // queries
    # An estimate: the text so far, and two turns of 60 tokens for each remaining question.
    tokens = 256 + max(
        len(session.prompt.history) // 4 + session.remaining * 2 * 60
        for session in waiting
        if session.prompt is not None
    )
    slot = 2 * config.num_hidden_layers * heads * size * tokens * local.lm.dtype.itemsize
    on_gpu = local.device.type == "cuda"
    free = torch.cuda.mem_get_info(local.device)[0] if on_gpu else psutil.virtual_memory().available
    return max(1, min(LARGEST_WAVE, int(free // 2 // slot)))
