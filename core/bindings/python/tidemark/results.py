"""What comes back, typed. Everything is in bytes; `raw` is the whole answer (core/answer/answer.schema.json)."""
from __future__ import annotations

import dataclasses
from typing import Any, Optional

from ._html import estimate_html

GIB = 2**30


def gib(size: float) -> str:
    return f"{size / GIB:.2f} GiB"


@dataclasses.dataclass(frozen=True)
class Issue:
    """One thing to tell about a request."""

    code: str
    severity: str  # error, warning, note
    path: str
    message: str
    suggestion: str = ""

    @classmethod
    def of(cls, issue: dict[str, Any]) -> Issue:
        return cls(**{field.name: issue.get(field.name, "") for field in dataclasses.fields(cls)})


class TidemarkError(ValueError):
    """A question that cannot be answered, and why."""

    def __init__(self, issues: list[Issue], answer: dict[str, Any]):
        super().__init__(" ".join(issue.message for issue in issues))
        self.issues = issues
        self.raw = answer


@dataclasses.dataclass(frozen=True)
class Range:
    """An amount and how sure it is."""

    low: int
    expected: int
    high: int

    def __str__(self) -> str:
        return f"{gib(self.expected)} ({self.low / GIB:.2f} to {self.high / GIB:.2f})"


@dataclasses.dataclass(frozen=True)
class Item:
    """A line of the breakdown, with its reason."""

    name: str
    bytes: int
    formula: str
    substituted: str
    source: str
    confidence: str


@dataclasses.dataclass(frozen=True)
class Part:
    """A category at the peak."""

    category: str
    bytes: int
    entries: tuple[Item, ...]


@dataclasses.dataclass(frozen=True)
class Instant:
    """A moment of the step."""

    instant: str
    phase: str
    total: int
    bytes: dict[str, int]


@dataclasses.dataclass(frozen=True)
class CardFit:
    """The verdict on one card."""

    gpu: str
    usable_bytes: int
    verdict: str  # fits, tight, does_not_fit, unknown
    headroom_bytes: int
    utilization: float

    @property
    def does(self) -> bool:
        """Whether no more is expected than the card gives."""
        return self.verdict != "unknown" and self.headroom_bytes >= 0

    @classmethod
    def of(cls, fit: dict[str, Any]) -> CardFit:
        return cls(**{field.name: fit[field.name] for field in dataclasses.fields(cls)})


@dataclasses.dataclass(frozen=True)
class Estimate:
    """What one job needs."""

    model: str
    allocated: Range  # torch.cuda.max_memory_allocated
    reserved: Range  # torch.cuda.max_memory_reserved
    device: Range  # as nvidia-smi shows it
    peak_phase: str
    peak_at: str
    phase_peaks: dict[str, int]
    parts: tuple[Part, ...]  # they sum to allocated.expected
    timeline: tuple[Instant, ...]
    parameters: dict[str, int]
    fits: tuple[CardFit, ...]  # one per card asked for
    issues: tuple[Issue, ...]
    request: dict[str, Any]
    raw: dict[str, Any]

    @classmethod
    def of(cls, request: dict[str, Any], answer: dict[str, Any]) -> Estimate:
        found = answer["estimate"]
        parts = tuple(Part(part["category"], part["bytes"], tuple(Item(**entry) for entry in part["entries"]))
                      for part in found["breakdown"])
        return cls(found["model"], Range(**found["allocated"]), Range(**found["reserved"]), Range(**found["device"]),
                   found["peak"]["phase"], found["peak"]["at"], found["phase_peaks"], parts,
                   tuple(Instant(**instant) for instant in found["timeline"]), found["parameters"],
                   tuple(CardFit.of(fit) for fit in answer["fits"]), tuple(Issue.of(issue) for issue in answer["issues"]),
                   request, answer)

    @property
    def breakdown(self) -> dict[str, int]:
        """Bytes by category at the peak."""
        return {part.category: part.bytes for part in self.parts}

    @property
    def total_gb(self) -> float:
        """The expected peak in units of 10^9 bytes."""
        return self.allocated.expected / 1e9

    def _on(self, gpu: Any) -> Estimate:
        from . import estimate

        return estimate(**{key: value for key, value in self.request.items() if key not in ("verb", "gpu", "gpus")}, gpu=gpu)

    def fits_gpu(self, gpu: Any) -> bool:
        """The same job on another card: a name, or {"memory_gib": 24}."""
        return self._on(gpu).fits[0].does

    def fits_on_card(self, vram_gb: float) -> bool:
        """The same job on a card of which only the size on the box is known."""
        return self.fits_gpu({"vram_gb": vram_gb})

    def summary(self) -> str:
        """One line."""
        verdicts = "".join(f"; {fit.gpu}: {fit.verdict.replace('_', ' ')}" for fit in self.fits)
        return f"{self.model}: {self.allocated}, in {self.peak_phase} at {self.peak_at}{verdicts}"

    def __str__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        return estimate_html(self)


@dataclasses.dataclass(frozen=True)
class Change:
    """One change of a job."""

    title: str
    patch: dict[str, Any]  # RFC 7396, for the request
    cost: dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Advice:
    """What makes a job fit a card with least harm."""

    gpu: str
    fits: bool  # as it is
    found: bool  # whether it fits as it is, or with the changes
    changes: tuple[Change, ...]
    allocated: Range  # with the changes
    suggestions: tuple[Change, ...]  # each by itself
    request: dict[str, Any]
    raw: dict[str, Any]

    @classmethod
    def of(cls, request: dict[str, Any], answer: dict[str, Any]) -> Advice:
        combination: Optional[dict[str, Any]] = answer["combination"]
        fit = CardFit.of(answer["now"]["fit"])
        steps = combination["steps"] if combination else []

        def change(step: dict[str, Any]) -> Change:
            return Change(step["title"], step["patch"], step["cost"])

        return cls(answer["gpu"], fit.does, combination["found"] if combination else fit.does,
                   tuple(change(step) for step in steps), Range(**(combination or answer["now"])["allocated"]),
                   tuple(change(step) for step in answer["suggestions"]), request, answer)


@dataclasses.dataclass(frozen=True)
class Imported:
    """What files of other tools say of a job."""

    request: dict[str, Any]  # what estimate(**request) takes
    provenance: dict[str, Any]  # for every field the file and lines that it stands in
    assumed: dict[str, str]  # or why it is so where no file says it
    unknowns: tuple[str, ...]  # questions that no file answers
    notes: tuple[str, ...]
    raw: dict[str, Any]

    @classmethod
    def of(cls, document: dict[str, Any]) -> Imported:
        errors = [Issue.of(issue) for issue in document["issues"] if issue["severity"] == "error"]
        if errors:
            raise TidemarkError(errors, document)
        return cls(document["job"], document["provenance"], document["assumed"], tuple(document["unknowns"]),
                   tuple(document["notes"]), document)
