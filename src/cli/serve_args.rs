//! The arguments of `starling serve`.

use std::net::IpAddr;
use std::num::NonZeroUsize;

use clap::Args;

use crate::cli::args::ConfigurationArgs;

/// A fixed port that no other service has registered.
pub const PORT: u16 = 8765;

// The arguments of `starling serve`.
#[derive(Debug, Args)]
#[command(mut_arg("allow_write", |arg| arg.hide(true)), mut_arg("hide_from_tests", |arg| arg.hide(true)))]
pub struct ServeArgs {
    /// Address to listen on. Addresses of other machines need --allow-remote.
    #[arg(long, value_name = "IP", default_value = "127.0.0.1")]
    pub host: IpAddr,
    /// Port to listen on; 0 chooses a free one. stdout names the address.
    #[arg(long, value_name = "N", default_value_t = PORT)]
    pub port: u16,
    /// Answer only requests with the API key in this environment variable.
    #[arg(long, value_name = "NAME")]
    pub api_key_env: Option<String>,
    /// Allow --host to be an address that other machines can reach. Needs an API key. The connection is not
    /// encrypted.
    #[arg(long, requires = "api_key_env")]
    pub allow_remote: bool,
    /// Maximum number of requests that wait for the model; further ones are refused with status 429.
    #[arg(long, value_name = "N", default_value = "64")]
    pub queue: NonZeroUsize,
    /// Context window in tokens: prompt and answer together. Default: context_window of the configuration, or
    /// 16384. A longer window needs more memory and time.
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u64).range(1..))]
    pub window: Option<u64>,
    #[command(flatten)]
    pub world: ConfigurationArgs,
}
