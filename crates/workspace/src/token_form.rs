//! Recognizes the access tokens of well-known services by their format.

/// The format of a service's tokens: a prefix and the characters after it.
struct TokenForm {
    prefix: &'static str,
    /// Minimum number of characters after the prefix.
    shortest: usize,
    /// The characters allowed after the prefix in addition to letters and digits.
    others: &'static str,
    /// Whether the characters after the prefix must contain a digit. Required if ordinary names can
    /// begin with the prefix, as `sk-learn-contrib-extras` does.
    needs_digit: bool,
}

const fn form(prefix: &'static str, shortest: usize, others: &'static str) -> TokenForm {
    TokenForm {
        prefix,
        shortest,
        others,
        needs_digit: true,
    }
}

/// Creates the format of a token whose prefix begins no ordinary name.
const fn only(prefix: &'static str, shortest: usize, others: &'static str) -> TokenForm {
    TokenForm {
        needs_digit: false,
        ..form(prefix, shortest, others)
    }
}

const FORMS: [TokenForm; 50] = [
    // GitHub and GitLab.
    form("ghp_", 20, ""),
    form("gho_", 20, ""),
    form("ghu_", 20, ""),
    form("ghs_", 20, ""),
    form("ghr_", 20, ""),
    form("github_pat_", 20, "_"),
    form("glpat-", 16, "_-."),
    form("gldt-", 16, "_-"),
    form("glrt-", 16, "_-."),
    only("glptt-", 16, "_-"),
    // Slack.
    form("xoxa-", 10, "-"),
    form("xoxb-", 10, "-"),
    form("xoxe-", 10, "-"),
    form("xoxp-", 10, "-"),
    form("xoxr-", 10, "-"),
    form("xoxs-", 10, "-"),
    form("xapp-", 10, "-"),
    only("hooks.slack.com/services/", 20, "/"),
    // Amazon, Google and DigitalOcean.
    form("AKIA", 16, ""),
    form("ASIA", 16, ""),
    form("AIza", 30, "_-"),
    form("ya29.", 20, "_-"),
    form("GOCSPX-", 20, "_-"),
    form("dop_v1_", 20, ""),
    // Hosts of AI models.
    form("sk-", 16, "_-"),
    form("gsk_", 20, ""),
    form("hf_", 20, ""),
    // Payment, shop and mail services.
    form("sk_", 16, "_"),
    form("pk_", 16, "_"),
    form("rk_", 16, "_"),
    only("sk_live_", 16, ""),
    only("rk_live_", 16, ""),
    only("sq0atp-", 16, "_-"),
    only("sq0csp-", 16, "_-"),
    form("key_", 16, ""),
    only("whsec_", 20, ""),
    form("shpat_", 20, ""),
    form("SG.", 20, "_-."),
    // Package registries.
    form("npm_", 20, ""),
    form("pypi-", 20, "_-"),
    form("dckr_pat_", 20, "_-"),
    form("rubygems_", 20, ""),
    // Other services.
    form("lin_api_", 20, ""),
    only("hvs.", 20, "_-"),
    only("glsa_", 20, "_"),
    form("dapi", 32, "-"),
    only("ATATT3x", 16, "_-="),
    only("figd_", 16, "_-"),
    only("api.telegram.org/bot", 20, ":_-"),
    form("AGE-SECRET-KEY-1", 20, ""),
];

/// Minimum length of each part of a JSON web token.
const SHORTEST_PART: usize = 8;

/// Returns whether a text contains a token of a known service.
pub fn has_token(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let starts = |prefix: &'static str| {
        let found = text.match_indices(prefix);
        found
            .filter(move |(at, _)| !text[..*at].ends_with(is_part))
            .map(|(at, _)| &text[at..])
    };
    let of_form = |form: &TokenForm| {
        starts(form.prefix).any(|token| {
            let is_own = |c: char| c.is_ascii_alphanumeric() || form.others.contains(c);
            let rest = &token[form.prefix.len()..];
            let body = &rest[..rest.find(|c| !is_own(c)).unwrap_or(rest.len())];
            let has_digit = || body.contains(|c: char| c.is_ascii_digit());
            body.len() >= form.shortest && (!form.needs_digit || has_digit())
        })
    };
    FORMS.iter().any(of_form) || starts("eyJ").any(is_web_token)
}

/// Returns whether a text begins with the prefix of a known service's tokens.
pub fn begins_like_token(text: &str) -> bool {
    FORMS.iter().any(|form| text.starts_with(form.prefix))
}

/// Returns whether a text begins with a JSON web token: three base64 parts separated by dots.
fn is_web_token(text: &str) -> bool {
    let is_own = |c: char| c.is_ascii_alphanumeric() || "_-.=".contains(c);
    let token = &text[..text.find(|c| !is_own(c)).unwrap_or(text.len())];
    let parts: Vec<&str> = token.split('.').collect();
    parts.len() >= 3 && parts[..3].iter().all(|part| part.len() >= SHORTEST_PART)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_of_known_services_are_found_anywhere_in_a_text() {
        let digits = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8";
        for form in &FORMS {
            let token = format!("{}{digits}", form.prefix);
            for text in [
                token.clone(),
                format!("https://h/?a={token}&b"),
                format!("'{token}'"),
            ] {
                assert!(has_token(&text), "{text}");
            }
            assert!(!has_token(&format!("{}short", form.prefix)), "{token}");
            let letters = format!("{}{}", form.prefix, "abcdefgh".repeat(5));
            assert_eq!(has_token(&letters), !form.needs_digit, "{letters}");
            assert!(!has_token(&format!("x{token}")), "{token}");
            assert!(begins_like_token(&token), "{token}");
        }
        let header = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJlMQ";
        assert!(has_token(header));
        assert!(!has_token("eyJhbGciOiJIUzI1NiJ9"));
    }

    #[test]
    fn ordinary_words_and_paths_are_no_tokens() {
        for text in [
            "sk-learn-contrib-extras",
            "npm_config_registry",
            "pypi-mirror.example.org",
            "key_of_the_first_table",
            "/usr/lib/python3.11/site-packages",
            "3f786850e387550fdab836ed7e6dc881de23001b",
            "hf_hub_offline",
        ] {
            assert!(!has_token(text), "{text}");
        }
    }
}
