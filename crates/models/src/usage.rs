//! Checks whether a usage report is plausible. An impossible report could let a request pass the
//! budget for free, or exhaust the budget.

use starling_core::{Tokens, Usage, WorstCase};

/// A report with fewer than 1/8 of the tokens of [`Tokens::at_most`] is too low, because no
/// vocabulary averages more than sixteen bytes per token.
const TOO_FEW: u64 = 8;
/// A report of more than 8 times the upper bound is a server error.
const TOO_MANY: u64 = 8;
/// Number of tokens that a provider may add to a prompt.
const ADDED: u64 = 16_384;

/// Returns the reported usage of a request if it is plausible, otherwise the upper bounds. If the cached
/// part of the prompt is not known, the part with which the prompt costs most is returned. `received` is an upper bound of the received tokens.
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
    let cached = match prompt == reported.prompt && reported.cached <= prompt {
        true => reported.cached,
        false => worst.cached_in_worst_case(prompt),
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
        at(Price::FREE, reported)
    }

    fn at(price: Price, reported: Option<(u64, u64, u64)>) -> (u64, u64, u64) {
        let worst = WorstCase {
            model: "m".to_owned(),
            prompt: Tokens(1_000),
            output: Tokens(500),
            price: Some(price),
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
        assert_eq!(of(Some((600, 900, 1))), (600, 0, 80));
        assert_eq!(of(Some((u64::MAX, 0, u64::MAX))), (1_000, 0, 80));
    }

    #[test]
    fn unknown_cached_part_counts_at_the_higher_price() {
        let dear = Price {
            cached: 2.0,
            ..Price::FREE
        };
        assert_eq!(at(dear, None), (1_000, 1_000, 80));
        assert_eq!(at(dear, Some((1, 1, 40))), (1_000, 1_000, 40));
        assert_eq!(at(dear, Some((600, 900, 40))), (600, 600, 40));
        assert_eq!(at(dear, Some((600, 100, 40))), (600, 100, 40));
    }
}
