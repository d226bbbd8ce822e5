//! [`Builder`] over the build command.

use super::site::{NotBuilt, SharedSite};
use crate::lab::{BuildJob, Builder};
use crate::model::{Artifact, BuildResult};
use async_trait::async_trait;

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
            Ok(dir) => BuildResult::Built {
                artifact: Box::new(
                    // The command's product is opaque: what it is can only be read back from what it does.
                    Artifact { dir, ..Artifact::of(job.commit.clone()) },
                ),
            },
            Err(NotBuilt::Untestable(untestable)) => BuildResult::Untestable(untestable),
            Err(NotBuilt::Infra(failure)) => BuildResult::Infra(failure),
        }
    }
}
