"""A run beside its promise: PromiseCallback for transformers' Trainer and TRL's.

    trainer = Trainer(..., callbacks=[PromiseCallback(tidemark.estimate(...))])
"""
from __future__ import annotations

import warnings
from typing import Any, Optional

from .results import Estimate, gib

try:
    from transformers import TrainerCallback
except ImportError:  # a loop of one's own may call the same methods

    class TrainerCallback:  # type: ignore[no-redef]
        pass


class PromiseCallback(TrainerCallback):
    """Compares torch.cuda's peaks with an estimate: warns once when a step takes more than its high end, tells the
    comparison when training ends. `on_mismatch(message)` takes the place of the warning."""

    def __init__(self, promise: Estimate, on_mismatch: Optional[Any] = None, device: Optional[int] = None):
        self.promise = promise
        self.device = device
        self.steps = 0
        self.allocated = 0
        self.reserved = 0
        self._tell = on_mismatch or (lambda message: warnings.warn(message, RuntimeWarning, stacklevel=2))
        self._told = False

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        import torch

        if torch.cuda.is_available():
            torch.cuda.reset_peak_memory_stats(self.device)

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        import torch

        if not torch.cuda.is_available():
            return
        self.steps += 1
        self.allocated = torch.cuda.max_memory_allocated(self.device)
        self.reserved = torch.cuda.max_memory_reserved(self.device)
        if self.allocated > self.promise.allocated.high and not self._told:
            self._told = True
            self._tell(f"Step {self.steps} took {gib(self.allocated)}, more than the {self.promise.allocated} that were promised. "
                       "What runs differs from what was asked about (batch, length, precision, model), or Tidemark is wrong.")

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if self.steps:
            print(self.comparison())

    def comparison(self) -> str:
        """Measured beside promised, in a line."""
        expected = self.promise.allocated.expected
        percent = 100 * (expected - self.allocated) / max(self.allocated, 1)
        return (f"Tidemark promised {self.promise.allocated}; {self.steps} steps took {gib(self.allocated)} "
                f"({percent:+.1f} %), {gib(self.reserved)} with the allocator's cache.")

    def measurement(self) -> dict[str, Any]:
        """What tidemark.calibrate([...]) takes."""
        job = {key: value for key, value in self.promise.request.items() if key != "verb"}
        return {"name": "this run", "job": job, "allocated_bytes": self.allocated, "reserved_bytes": self.reserved}
