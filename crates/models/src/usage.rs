//! Whether a report of used tokens can be believed. A report that cannot be true would let a request
//! pass the budget for nothing, or use all of it up.

use starling_core::{Tokens, Usage, WorstCase};

/// No vocabulary has tokens of more bytes than sixteen on average: eight times fewer tokens than
/// [`Tokens::at_most`] counts.
const TOO_FEW: u64 = 8;
/// A report this many times over the upper bound is an error of the server.
const TOO_MANY: u64 = 8;
/// Room for what a provider adds to a prompt by itself.
const ADDED: u64 = 16_384;

/// The reported usage of one request, where it can be true; else the upper bounds. `received` is an
/// upper bound of what arrived.
pub(super) fn credible(reported: Option<Usage>, worst: &WorstCase, received: Tokens) -> Usage {
    let reported = reported.unwrap_or_default();
    let is_likely = |count: Tokens, least: Tokens, most: Tokens| {
        let most = most.0.saturating_mul(TOO_MANY).saturating_add(ADDED);
        (least.0.div_ceil(TOO_FEW)..=most).contains(&count.0)
    };
    let prompt = match is_likely(reported.prompt, worst.prompt, worst.prompt) {
        true => reported.prompt,
        false => worst.prompt,
    };
    let output = match is_likely(reported.output, received, received.max(worst.output)) {
        true => reported.output,
        false => received,
    };
    if (prompt, output) != (reported.prompt, reported.output) {
        tracing::debug!(model = %worst.model, ?reported, "the reported usage is not believed");
    }
    let cached = match prompt == reported.prompt {
        true => reported.cached.min(prompt),
        false => Tokens(0),
    };
    Usage {
        prompt,
        cached,
        output,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use starling_core::Price;

    fn of(reported: Option<(u64, u64, u64)>) -> (u64, u64, u64) {
        let worst = WorstCase {
            model: "m".to_owned(),
            prompt: Tokens(1_000),
            output: Tokens(500),
            price: Some(Price::FREE),
        };
        let reported = reported.map(|(prompt, cached, output)| Usage {
            prompt: Tokens(prompt),
            cached: Tokens(cached),
            output: Tokens(output),
        });
        let usage = credible(reported, &worst, Tokens(80));
        (usage.prompt.0, usage.cached.0, usage.output.0)
    }

    #[test]
    fn plausible_usage_reports_are_accepted() {
        for likely in [(600, 0, 40), (600, 600, 10), (3_000, 100, 4_000)] {
            assert_eq!(of(Some(likely)), likely);
        }
    }

    #[test]
    fn missing_or_impossible_usage_reports_are_replaced_by_upper_bounds() {
        assert_eq!(of(None), (1_000, 0, 80));
        assert_eq!(of(Some((0, 0, 0))), (1_000, 0, 80));
        assert_eq!(of(Some((1, 1, 40))), (1_000, 0, 40));
        assert_eq!(of(Some((600, 900, 1))), (600, 600, 80));
        assert_eq!(of(Some((u64::MAX, 0, u64::MAX))), (1_000, 0, 80));
    }
}
