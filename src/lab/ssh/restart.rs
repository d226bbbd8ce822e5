//! A machine that is told to restart, and what comes up.

use super::far::{Far, FarError, Script};
use super::link::Link;
use super::wait::{Sight, Stage, Wait};
use crate::lab::identity::Identity;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Between two looks.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// For a look: a machine on its way up answers late.
const LOOK: Duration = Duration::from_secs(30);

const SIGHT: &str = include_str!("sut/sight.sh");

/// What came of a restart.
#[derive(Debug)]
pub(super) enum Restarted {
    /// A system is up, under a new boot id.
    Up(Identity),
    /// Not within the time.
    NotUp {
        /// How far it came.
        stage: Stage,
        /// In words.
        words: String,
    },
}

/// Looks at the machine once. Only a machine that will never let us in is an error.
pub(super) async fn look(link: &mut Link) -> Result<Sight, FarError> {
    let script = Script { what: "look at the machine", text: SIGHT, args: &[], deadline: LOOK };
    match link.sh(script).await {
        Ok(told) => Ok(Sight::parse(&told.stdout)),
        Err(error @ FarError::NotUp { .. }) if error.to_string().contains("is booting") => Ok(Sight::Booting),
        Err(FarError::NotUp { .. } | FarError::Lost { .. } | FarError::Late { .. }) => Ok(Sight::Nothing),
        Err(error @ (FarError::Refused { .. } | FarError::File { .. })) => Err(error),
    }
}

/// Waits for a new system after the boot id `old`, which is not empty. A host key or a login that is refused is waited for too,
/// to the end: a kernel without its disk may start another system's sshd.
pub(super) async fn wait(link: &mut Link, old: &str, within: Duration) -> Result<Restarted, FarError> {
    let until = Instant::now() + within;
    let Some(mut wait) = Wait::after(old) else {
        let reason = "its boot id is empty, so that a new boot could not be told from the old".to_owned();
        return Err(FarError::File { what: "restart the machine".to_owned(), reason });
    };
    loop {
        let sight = look(link).await;
        let is_over = Instant::now() >= until;
        let sight = match sight {
            Err(error) if is_over => return Err(error),
            Err(_) => Sight::Nothing,
            Ok(sight) => sight,
        };
        if wait.see(sight) == Stage::Up
            && let Some(identity) = wait.identity()
        {
            return Ok(Restarted::Up(identity.clone()));
        }
        if is_over {
            return Ok(Restarted::NotUp { stage: wait.stage(), words: wait.words() });
        }
        // The old system goes on for a while, and its connection would go down with it.
        if wait.stage() == Stage::Old {
            link.close().await;
        }
        sleep(LOOK_AGAIN).await;
    }
}
