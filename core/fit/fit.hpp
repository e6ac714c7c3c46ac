#pragma once

#include <string>
#include <string_view>

#include "core/answer/estimate.hpp"
#include "core/fit/peaks.hpp"
#include "core/job/request.hpp"
#include "core/units/bytes.hpp"

namespace tidemark {

/// Whether a job that needs `allocated` fits the card. The rule compares what is allocated, not what is reserved: the
/// caching allocator gives its cache back before it fails. Usable is what torch sees, less the CUDA context and what
/// the user states in `overrides`. It fits when even the high end does, does not fit when not even the low end does,
/// and between them, on either side of the expected value, it is tight: the estimate cannot tell.
Fit check_fit(const Range& allocated, const Card& card, const Overrides& overrides = {});

/// The same of a job that a search has changed: with what it takes beside itself, and unknown where it does not run.
Fit check_fit(const Figures& figures, const Card& card);

/// Whether those figures are there and leave no doubt: the verdict is that the job fits.
bool fits(const Figures& figures, const Card& card);

/// Whether more is expected than the card gives: the exit status of the command, which knows only yes and no.
bool falls_short(const Fit& fit);

/// The card as it is left by its context and by what the user states: all that `check_fit` would say is usable of it.
Card left_of(const Card& card, const Overrides& overrides);

/// What vLLM takes of this card, where it generates on it.
void take_share(const Card& card, TrainingJob& job);

/// Takes back that a job fits where it cannot run for another reason; does nothing when `why` is empty.
void cannot_run(Fit& fit, std::string_view why);

}  // namespace tidemark
