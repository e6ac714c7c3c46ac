"""What the checks of readings share: expectations that are counted and printed where they fail, and a way into a job."""


class Checks:
    def __init__(self) -> None:
        self.failures = 0

    def expect(self, what: str, got, wanted) -> None:
        if got != wanted:
            self.failures += 1
            print(f"{what}: {got!r}, expected {wanted!r}")


def at(job: dict, path: str):
    """The value at a dotted path, or None."""
    for key in path.split("."):
        job = job.get(key) if isinstance(job, dict) else None
    return job
