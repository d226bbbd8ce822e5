//! [`Builder`] over the build command.

use super::call::infra;
use super::reading::first_line;
use super::site::{NotBuilt, SharedSite};
use crate::lab::{BuildJob, Builder};
use crate::model::{Artifact, BuildResult};
use async_trait::async_trait;
use std::io;
use std::path::Path;

/// Builds by the user's build command, or, where the site has none, checks the candidate out.
pub struct CommandBuilder {
    site: SharedSite,
}

impl CommandBuilder {
    /// A builder in `site`.
    pub fn new(site: SharedSite) -> Self {
        Self { site }
    }
}

#[async_trait(?Send)]
impl Builder for CommandBuilder {
    async fn build(&mut self, job: &BuildJob) -> BuildResult {
        let mut site = self.site.lock().await;
        match site.build(job.step, &job.commit, job.deadline, &job.log).await {
            Ok(dir) => match told(&dir, Artifact::of(job.commit.clone())) {
                Ok(artifact) => BuildResult::Built { artifact: Box::new(artifact) },
                Err(error) => {
                    BuildResult::Infra(infra(&format!("read what the build told in {dir}"), &error))
                }
            },
            Err(NotBuilt::Untestable(untestable)) => BuildResult::Untestable(untestable),
            Err(NotBuilt::Infra(failure)) => BuildResult::Infra(failure),
        }
    }
}

/// The command's product is opaque: what it is can only be read back from what it does, and from what the command tells of it.
fn told(dir: &str, artifact: Artifact) -> io::Result<Artifact> {
    let read = |name: &str| match dir.is_empty() {
        true => Ok(String::new()),
        false => first_line(&Path::new(dir).join(name)).map(Option::unwrap_or_default),
    };
    let (release, build_id) = (read("release")?, read("build_id")?);
    Ok(Artifact { dir: dir.to_owned(), release, build_id, ..artifact })
}
