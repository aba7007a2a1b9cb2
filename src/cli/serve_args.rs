//! The arguments of `starling serve`.

use std::net::IpAddr;
use std::num::NonZeroUsize;

use clap::Args;

use crate::cli::args::ConfigurationArgs;

/// Default port, fixed so that clients can be configured once.
pub const PORT: u16 = 8765;

#[derive(Debug, Args)]
#[command(mut_arg("allow_write", |arg| arg.hide(true)), mut_arg("hide_from_tests", |arg| arg.hide(true)))]
pub struct ServeArgs {
    /// Address to listen on. Addresses that other machines can reach need --allow-remote.
    #[arg(long, value_name = "IP", default_value = "127.0.0.1")]
    pub host: IpAddr,
    /// Port to listen on. 0 selects a free port. The address is printed to stdout.
    #[arg(long, value_name = "N", default_value_t = PORT)]
    pub port: u16,
    /// Name of an environment variable with an API key, which clients must send.
    #[arg(long, value_name = "NAME")]
    pub api_key_env: Option<String>,
    /// Allow --host to be an address that other machines can reach. Needs an API key. Connections are not
    /// encrypted.
    #[arg(long, requires = "api_key_env")]
    pub allow_remote: bool,
    /// Maximum number of requests that wait for the model. Further requests are refused with status 429.
    #[arg(long, value_name = "N", default_value = "64")]
    pub queue: NonZeroUsize,
    /// Context window in tokens, for prompt and answer together. Default: context_window of the
    /// configuration, or 16384. A longer window needs more memory and time.
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u64).range(1..))]
    pub window: Option<u64>,
    #[command(flatten)]
    pub world: ConfigurationArgs,
}
