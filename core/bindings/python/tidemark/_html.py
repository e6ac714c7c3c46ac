"""An estimate in a notebook: the verdict, a bar of what fills the card, a table. No script, nothing fetched."""
from __future__ import annotations

from html import escape

COLOURS = {"weights": "#3b6fb6", "gradients": "#5fa55a", "optimizer_states": "#8d6cab", "activations": "#d98b2b",
           "logits_loss": "#c8553d", "workspace": "#7f7f7f", "communication": "#2a9d8f", "buffers": "#b5a642"}
WORDS = {"fits": "fits", "tight": "is tight on", "does_not_fit": "does not fit", "unknown": "may or may not fit"}


def _gib(size):
    return f"{size / 2**30:.2f} GiB"


def estimate_html(estimate) -> str:
    fit = estimate.fits[0] if estimate.fits else None
    whole = max(estimate.allocated.expected, fit.usable_bytes if fit else 0, 1)
    bar = "".join(f'<span title="{escape(part.category)}: {_gib(part.bytes)}" style="display:inline-block;height:1em;width:'
                  f'{100 * part.bytes / whole:.2f}%;background:{COLOURS.get(part.category, "#999")}"></span>'
                  for part in estimate.parts)
    rows = "".join(f"<tr><td>{escape(part.category.replace('_', ' '))}</td><td>{_gib(part.bytes)}</td>"
                   f"<td>{100 * part.bytes / estimate.allocated.expected:.0f} %</td></tr>" for part in estimate.parts)
    verdict = f" {WORDS[fit.verdict]} {escape(fit.gpu)} ({_gib(fit.usable_bytes)} usable)" if fit else ""
    notes = "".join(f"<li>{escape(issue.message)}</li>" for issue in estimate.issues if issue.severity == "warning")
    return (f'<div class="tidemark"><p><b>{escape(estimate.model)}</b>: <b>{_gib(estimate.allocated.expected)}</b> '
            f"({_gib(estimate.allocated.low)} to {_gib(estimate.allocated.high)}){verdict}; peak in "
            f"{escape(estimate.peak_phase)} at <code>{escape(estimate.peak_at)}</code></p>"
            f'<div role="img" aria-label="What fills the card" style="width:100%;max-width:40em;white-space:nowrap;'
            f'border:1px solid;line-height:1em">{bar}</div><table><tbody>{rows}</tbody></table>'
            + (f"<ul>{notes}</ul>" if notes else "") + "</div>")
