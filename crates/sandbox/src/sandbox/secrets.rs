//! The locations of keys in home directories.

/// Paths of keys, relative to a home directory. They are hidden even if a directory around them is
/// visible, for example because the workspace is the home directory itself.
pub(super) const SECRETS: [&str; 20] = [
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".netrc",
    ".pgpass",
    ".pypirc",
    ".npmrc",
    ".git-credentials",
    ".password-store",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".config/gcloud",
    ".config/gh",
    ".config/git/credentials",
    ".config/huggingface",
    ".cache/huggingface/token",
    ".local/share/keyrings",
];
