//! `starling serve`: serves a local model to other programs.

use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, SocketAddr};

use anyhow::Context;
use tokio::net::TcpListener;

use super::input::{Input, InputSource, Inputs};
use super::serve_args::ServeArgs;
use super::standard::{note, print_line};
use super::{Outcome, WrongUse, fetch, project, services};
use starling_config::ModelKind;
use starling_core::{ChatModel, ChatRequest, ChatWatch, Message, ModelNotice, Tokens};
use starling_models::registry::{ModelSource, open_in_process, resolve, weights_path};
use starling_models::serving::{self, RunningServer, ServingError, ServingLock};
use starling_platform::processes::resident_bytes;
use starling_serve::{GRACE, ServeOptions, serve};

/// Runs the command.
pub async fn run(mut args: ServeArgs) -> anyhow::Result<Outcome> {
    let key = api_key(&args)?;
    let model = args
        .world
        .model
        .get_or_insert_with(|| "local".to_owned())
        .clone();
    let root = project::root(None)?;
    let loaded =
        services::configuration(&root, &args.world).map_err(|error| WrongUse(error.to_string()))?;
    let mut source =
        resolve(&loaded.config, &model).map_err(|error| WrongUse(error.to_string()))?;
    if source.settings.kind != ModelKind::Gguf {
        return Err(WrongUse(format!(
            "{model} is not a local model, so it cannot be served: use local or gguf:PATH"
        ))
        .into());
    }
    source.settings.context_window = args.window.or(source.settings.context_window);
    fetch::offer(&root, &args.world, false).await?;
    let weights = weights_path(&source)?;
    let directory = serving::directory()
        .context("no home directory was found: set STARLING_CACHE_DIR to a directory")?;
    let lock = match ServingLock::take(&directory, &weights) {
        Ok(lock) => lock,
        Err(error @ ServingError::Runs(_)) => {
            note(format_args!("starling: {error}"));
            return Ok(Outcome::NotSettled);
        }
        Err(error) => return Err(error.into()),
    };
    let wanted = SocketAddr::new(args.host, args.port);
    let listener = TcpListener::bind(wanted)
        .await
        .with_context(|| format!("cannot listen on {wanted}; --port 0 selects a free port"))?;
    let address = listener.local_addr()?;
    let model = open_in_process(&source)?;
    load(model.as_ref()).await?;
    let names = names(&source, &weights);
    let server = RunningServer {
        address: reachable(address).to_string(),
        process: std::process::id(),
        model: names[0].clone(),
        weights,
        window: model.profile().context_window,
        call_key: call_key(),
    };
    lock.publish(&server)?;
    let call_key = server.call_key;
    print_line(format_args!("http://{address}/v1"))?;
    note(format_args!(
        "serving {} with a window of {} tokens; press Ctrl-C to stop",
        server.model, server.window.0
    ));
    let options = ServeOptions {
        names,
        key,
        call_key,
        queue: args.queue.get(),
        remote: args.allow_remote,
        grace: GRACE,
        resident: resident_bytes,
    };
    serve(listener, model, options, told_to_end()).await?;
    Ok(Outcome::Settled)
}

/// Returns the API key. Returns an error if other machines can reach the server but no key is
/// required.
fn api_key(args: &ServeArgs) -> Result<Option<String>, WrongUse> {
    if !args.host.is_loopback() && !args.allow_remote {
        return Err(WrongUse(format!(
            "other machines can reach {}: use 127.0.0.1 or ::1, or --allow-remote with --api-key-env",
            args.host
        )));
    }
    let Some(name) = &args.api_key_env else {
        return Ok(None);
    };
    match std::env::var(name) {
        Ok(key) if !key.is_empty() => Ok(Some(key)),
        _ => Err(WrongUse(format!(
            "the environment variable {name} is not set, but --api-key-env names it"
        ))),
    }
}

/// Returns the names under which clients may request the model.
fn names(source: &ModelSource, weights: &std::path::Path) -> Vec<String> {
    let stem = weights.file_stem().unwrap_or_default();
    vec![stem.to_string_lossy().into_owned(), source.name.clone()]
}

/// Returns the address at which processes on this machine reach the server.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(std::net::Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(std::net::Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

/// Returns a random key of 128 bits.
fn call_key() -> String {
    let number = || RandomState::new().hash_one("call key");
    format!("{:016x}{:016x}", number(), number())
}

struct LoadNotices;

impl ChatWatch for LoadNotices {
    fn delta(&self, _text: &str) {}

    fn notice(&self, notice: ModelNotice) {
        if let ModelNotice::Preparing { message, .. } = notice {
            note(message);
        }
    }
}

/// Sends a short request to the model, so that its weights are loaded and errors are found before
/// the first client connects.
async fn load(model: &dyn ChatModel) -> anyhow::Result<()> {
    let request = ChatRequest {
        conversation: "serve".to_owned(),
        messages: vec![Message::User {
            text: "Hello".to_owned(),
        }],
        tools: Vec::new(),
        max_output: Tokens(1),
        temperature: 0.0,
        top_p: None,
        seed: None,
        beginning: String::new(),
        following: String::new(),
        stop: Vec::new(),
        format: starling_core::AnswerFormat::Free,
    };
    model.chat(&request, &LoadNotices).await?;
    Ok(())
}

/// Waits for Ctrl-C or a signal to terminate, then begins shutdown.
async fn told_to_end() {
    let mut inputs = Inputs::of(InputSource::Nothing);
    while let Some(input) = inputs.next().await {
        if input == Input::Interrupt {
            note("shutting down: running requests may take up to 10 seconds");
            tokio::spawn(end_at_once(inputs));
            return;
        }
    }
}

/// Exits immediately at a second Ctrl-C or signal to terminate.
async fn end_at_once(mut inputs: Inputs) {
    while let Some(input) = inputs.next().await {
        if input == Input::Interrupt {
            std::process::exit(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::args::{Cli, Command};

    fn parsed(line: &str) -> Result<ServeArgs, clap::Error> {
        match Cli::try_parse_from(line.split(' '))?.command {
            Command::Serve(args) => Ok(args),
            _ => panic!("not serve"),
        }
    }

    #[test]
    fn remote_address_needs_allow_remote_and_an_api_key() {
        for line in [
            "starling serve --host 0.0.0.0",
            "starling serve --host 192.168.0.7",
        ] {
            let error = api_key(&parsed(line).unwrap()).unwrap_err();
            assert!(error.to_string().contains("--allow-remote"), "{error}");
        }
        assert!(parsed("starling serve --host 0.0.0.0 --allow-remote").is_err());
        let line =
            "starling serve --host 0.0.0.0 --allow-remote --api-key-env STARLING_NO_SUCH_KEY";
        let error = api_key(&parsed(line).unwrap()).unwrap_err();
        assert!(
            error.to_string().contains("STARLING_NO_SUCH_KEY"),
            "{error}"
        );
        let line = "starling serve --host 0.0.0.0 --allow-remote --api-key-env PATH";
        assert!(api_key(&parsed(line).unwrap()).unwrap().is_some());
        for line in ["starling serve", "starling serve --host ::1 --port 0"] {
            assert_eq!(api_key(&parsed(line).unwrap()), Ok(None));
        }
    }

    #[test]
    fn unspecified_address_is_reached_at_loopback() {
        let shown = |text: &str| reachable(text.parse().unwrap()).to_string();
        assert_eq!(shown("0.0.0.0:1"), "127.0.0.1:1");
        assert_eq!(shown("[::]:1"), "[::1]:1");
        assert_eq!(shown("127.0.0.1:1"), "127.0.0.1:1");
    }

    #[test]
    fn call_keys_differ() {
        assert_eq!(call_key().len(), 32);
        assert_ne!(call_key(), call_key());
    }
}
