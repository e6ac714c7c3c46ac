"""How much GPU memory a training job needs, before it is launched.

    >>> import tidemark
    >>> job = tidemark.estimate("llama-3.1-8b", method="qlora", gpu="4090")
    >>> job.allocated.expected, job.fits[0].verdict

Keyword arguments are the keys of a request (docs/reference.md). A question that cannot be answered raises TidemarkError.
"""
from __future__ import annotations

import json
import pathlib
from typing import Any, Union

from . import _native
from .results import (Advice, CardFit, Change, Estimate, Imported, Instant, Issue, Item, Part, Range, TidemarkError)

__version__: str = _native.version
__all__ = ["Advice", "CardFit", "Change", "Estimate", "Imported", "Instant", "Issue", "Item", "Part", "Range", "TidemarkError",
           "advise", "ask", "calibrate", "estimate", "fits", "ghost", "import_file"]

Model = Union[str, None]


def ask(request: dict[str, Any]) -> dict[str, Any]:
    """The answer to any request, as it is: {"verb": "catalog", "list": "gpus"}. Raises nothing: trouble is in its "issues"."""
    return json.loads(_native.handle(json.dumps(request)))


def _answered(verb: str, model: Model, options: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    request = {"verb": verb, **({} if model is None else {"model": model}), **options}
    answer = ask(request)
    errors = [Issue.of(issue) for issue in answer["issues"] if issue["severity"] == "error"]
    if errors:
        raise TidemarkError(errors, answer)
    return request, answer


def estimate(model: Model = None, **options: Any) -> Estimate:
    """The memory of one training job, itemised: estimate("llama-3.1-8b", method="lora", sequence_length=4096, gpu="4090")."""
    request, answer = _answered("estimate", model, options)
    return Estimate.of(request, answer)


def fits(model: Model = None, *, gpu: Any, **options: Any) -> bool:
    """Whether no more is expected than the card gives: the exit status of `tidemark estimate`."""
    return estimate(model, gpu=gpu, **options).fits[0].does


def advise(model: Model = None, *, gpu: Any, **options: Any) -> Advice:
    """What to change with least harm so that a job fits a card."""
    request, answer = _answered("advise", model, {"gpu": gpu, **options})
    return Advice.of(request, answer)


def calibrate(measurements: list[dict[str, Any]], **options: Any) -> dict[str, Any]:
    """Factors fitted to measurements (docs/calibration.md): what estimate(calibration=...) takes."""
    return _answered("calibrate", None, {"measurements": measurements, **options})[1]["calibration"]


def import_file(*paths: Union[str, pathlib.Path]) -> Imported:
    """The job that files of other tools say together. Nothing in them is run. Texts alone: model files are the command's."""
    files = [{"name": str(path), "text": pathlib.Path(path).read_text(encoding="utf-8", errors="replace")} for path in paths]
    return Imported.of(json.loads(_native.read_files(json.dumps({"files": files}))))


def ghost(param_count_b: float, dtype: str = "bf16", batch_size: int = 1, seq_len: int = 2048, **options: Any) -> Estimate:
    """A count of parameters is all that is known (in billions): a published architecture of that size stands for it."""
    precision = {"bf16": "pure_bf16", "fp16": "pure_fp16"}.get(dtype, dtype)
    return estimate(parameters=param_count_b * 1e9, precision=precision, micro_batch_size=batch_size, sequence_length=seq_len,
                    **options)
