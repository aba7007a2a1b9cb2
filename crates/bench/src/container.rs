//! Container images in which the tests of instances run, with the names that SWE-bench and similar
//! benchmarks use.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::str::FromStr;
use std::time::Duration;

use tokio::process::Command;

use starling_workspace::{HostPrograms, ProgramError, Variables};

use starling_sandbox::Container;

/// Time limit for a client to answer whether an image exists.
const DEADLINE: Duration = Duration::from_secs(30);
/// Replacement for `__` of an instance id in the names of SWE-bench images, because registries do
/// not allow `__`.
const SEPARATOR: &str = "_1776_";
/// Location of Python in SWE-bench images. For other images, `PATH` is searched after it.
const PYTHON: &str = "/opt/miniconda3/envs/testbed";

/// Containers for the tests of instances.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Containers {
    /// `docker`, `podman`, or another program with the same command line.
    pub client: PathBuf,
    pub template: ImageTemplate,
}

/// An image name with a placeholder for the instance id: `{id}`, or `{id:X}` to replace `__` by X.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageTemplate {
    before: String,
    separator: String,
    after: String,
}

/// Error when an instance has no container.
#[derive(Debug, thiserror::Error)]
pub enum ContainerError {
    #[error("cannot start {}: {error}; install docker or podman, or choose a client with --container-client", .client.display())]
    NoClient {
        client: PathBuf,
        error: std::io::Error,
    },
    #[error("{} did not respond within {} s; is its service running?", .0.display(), DEADLINE.as_secs())]
    Late(PathBuf),
    #[error("the container image {image} does not exist, and images are not pulled automatically: run `{} pull {image}`, or build the image ({message})", .client.display())]
    NoImage {
        client: PathBuf,
        image: String,
        message: String,
    },
}

impl FromStr for ImageTemplate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            "expected an image with {id} where the instance's name goes, for example \
             swebench/sweb.eval.x86_64.{id}"
                .to_owned()
        };
        let (before, rest) = text.split_once("{id").ok_or_else(wrong)?;
        let (gap, after) = rest.split_once('}').ok_or_else(wrong)?;
        let separator = match gap {
            "" => SEPARATOR,
            given => given.strip_prefix(':').ok_or_else(wrong)?,
        };
        Ok(ImageTemplate {
            before: before.to_owned(),
            separator: separator.to_owned(),
            after: after.to_owned(),
        })
    }
}

impl fmt::Display for ImageTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ImageTemplate {
            before,
            separator,
            after,
        } = self;
        write!(f, "{before}{{id:{separator}}}{after}")
    }
}

impl ImageTemplate {
    /// Returns the image of an instance. Image names are in lower case.
    pub fn image(&self, instance_id: &str) -> String {
        let id = instance_id.to_lowercase().replace("__", &self.separator);
        format!("{}{id}{}", self.before, self.after)
    }
}

impl Containers {
    /// Returns the container of an instance, after checking that its image exists.
    ///
    /// # Errors
    /// Fails if there is no client, if it does not answer, or if the image does not exist.
    pub async fn of(&self, instance_id: &str) -> Result<Container, ContainerError> {
        let image = self.template.image(instance_id);
        let client = self.client.clone();
        let no_client = |error: ProgramError| ContainerError::NoClient {
            client: self.client.clone(),
            error: std::io::Error::other(error),
        };
        let programs = HostPrograms::outside_current_directory();
        let path = programs
            .find(&client.to_string_lossy())
            .map_err(no_client)?;
        let inspect = programs.command(&path, Variables::Inherited, Path::new("/"));
        let mut inspect = Command::from(inspect);
        inspect
            .args(["image", "inspect", "--format", "{{.Id}}", &image])
            .stdin(Stdio::null())
            .kill_on_drop(true);
        let output = match tokio::time::timeout(DEADLINE, inspect.output()).await {
            Err(_) => return Err(ContainerError::Late(client)),
            Ok(Err(error)) => return Err(ContainerError::NoClient { client, error }),
            Ok(Ok(output)) => output,
        };
        match output.status.success() {
            true => Ok(Container { client, image }),
            false => Err(ContainerError::NoImage {
                client,
                image,
                message: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
            }),
        }
    }
}

/// Returns the Python environment of a container, in the form in which environments name one.
pub(super) fn python() -> &'static Path {
    Path::new(PYTHON)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[track_caller]
    fn check(template: &str, image: &str) {
        let template: ImageTemplate = template.parse().unwrap();
        assert_eq!(template.image("Pydata__xarray-4094"), image);
        assert_eq!(template.to_string().parse(), Ok(template));
    }

    #[test]
    fn image_template_fills_in_the_instance_id_as_registries_require() {
        check(
            "swebench/sweb.eval.x86_64.{id}:latest",
            "swebench/sweb.eval.x86_64.pydata_1776_xarray-4094:latest",
        );
        check(
            "xingyaoww/sweb.eval.x86_64.{id:_s_}",
            "xingyaoww/sweb.eval.x86_64.pydata_s_xarray-4094",
        );
        check("local/{id:__}", "local/pydata__xarray-4094");
        for wrong in ["image", "{id", "{ident}", "{id_}"] {
            assert!(wrong.parse::<ImageTemplate>().is_err(), "{wrong}");
        }
    }

    #[tokio::test]
    async fn missing_container_client_or_image_is_reported() {
        let dir = tempfile::tempdir().unwrap();
        let client = dir.path().join("client");
        std::fs::write(
            &client,
            "#!/bin/sh\n[ \"$5\" = here/a ] || { echo No such image >&2; exit 1; }\n",
        )
        .unwrap();
        let runs = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&client, runs).unwrap();
        let mut containers = Containers {
            client: client.clone(),
            template: "here/{id}".parse().unwrap(),
        };
        let found = containers.of("a").await.unwrap();
        assert_eq!(
            found,
            Container {
                client,
                image: "here/a".into()
            }
        );
        let missing = containers.of("b").await.unwrap_err().to_string();
        assert!(missing.contains("here/b does not exist"), "{missing}");
        assert!(missing.contains("No such image"), "{missing}");
        containers.client = "/no/client".into();
        let none = containers.of("a").await.unwrap_err().to_string();
        assert!(none.contains("install docker or podman"), "{none}");
    }
}
