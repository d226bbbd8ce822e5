//! Whether a machine that was told to restart has come up: by what it answers, not by the clock.
//!
//! Pure. Invariants: an answer under the old boot id is the old system, however long it still runs; a new one counts when
//! it was given a few times in a row, since a machine on its way up may yet fall; nobody works on one that is still
//! starting services.

use crate::lab::identity::Identity;

/// Answers in a row under one new boot id.
const IN_A_ROW: u32 = 3;

/// What an attempt to look at the machine gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Sight {
    /// Nothing answers.
    Nothing,
    /// It answers, and lets nobody in yet.
    Booting,
    /// It tells who it is.
    Account {
        /// Its own words.
        identity: Identity,
        /// Whether only root is let in.
        is_closed: bool,
        /// As `systemctl is-system-running` says; "none" without systemd.
        state: String,
    },
}

impl Sight {
    /// Reads the answer of sut/sight.sh.
    pub fn parse(stdout: &[u8]) -> Self {
        let identity = Identity::parse(stdout);
        if identity.boot_id.is_empty() {
            return Self::Nothing;
        }
        let text = String::from_utf8_lossy(stdout);
        let value = |key: &str| {
            let mut head = text.lines().take_while(|line| *line != "notes");
            head.find_map(|line| line.strip_prefix(key)?.strip_prefix(' ')).map(str::to_owned)
        };
        let state = value("state").unwrap_or_else(|| "unknown".to_owned());
        Self::Account { identity, is_closed: value("nologin").is_some(), state }
    }
}

/// How far a restart has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// The old system still answers.
    Old,
    /// Nothing has answered since.
    Down,
    /// A new system answers and is not done.
    Starting,
    /// A new system has come up.
    Up,
}

/// A restart that is waited for.
#[derive(Debug)]
pub(super) struct Wait {
    old: String,
    in_a_row: u32,
    stage: Stage,
    /// The last account under a new boot id.
    identity: Option<Identity>,
    /// The last state that was told.
    state: String,
}

impl Wait {
    /// For a machine that had this boot id before; one that is not known makes every later one look new. `None`: it is
    /// empty, so that nothing should be restarted.
    pub fn after(old: &str) -> Option<Self> {
        let old = (!old.is_empty()).then(|| old.to_owned())?;
        Some(Self { old, in_a_row: 0, stage: Stage::Old, identity: None, state: String::new() })
    }

    /// Takes what was seen; gives how far it is.
    pub fn see(&mut self, sight: Sight) -> Stage {
        let known = self.identity.take();
        self.stage = match sight {
            Sight::Nothing if self.stage == Stage::Old => Stage::Down,
            Sight::Nothing | Sight::Booting => {
                self.in_a_row = 0;
                if matches!(sight, Sight::Booting) { Stage::Starting } else { Stage::Down }
            }
            Sight::Account { identity, .. } if identity.boot_id == self.old => Stage::Old,
            Sight::Account { identity, is_closed, state } => {
                let is_same = known.is_some_and(|known| known.boot_id == identity.boot_id);
                self.in_a_row = if is_same { self.in_a_row + 1 } else { 1 };
                let is_done = matches!(state.as_str(), "running" | "degraded" | "none");
                self.identity = Some(identity);
                self.state = state;
                if self.in_a_row >= IN_A_ROW && is_done && !is_closed { Stage::Up } else { Stage::Starting }
            }
        };
        self.stage
    }

    /// How far it is.
    pub fn stage(&self) -> Stage {
        self.stage
    }

    /// Who answers now, if it is a new system.
    pub fn identity(&self) -> Option<&Identity> {
        self.identity.as_ref()
    }

    /// How far it came, for a message.
    pub fn words(&self) -> String {
        match self.stage {
            Stage::Old => "the old system still answers".to_owned(),
            Stage::Down => "nothing answers".to_owned(),
            Stage::Starting if self.state.is_empty() => "it is booting and lets nobody in".to_owned(),
            Stage::Starting => format!("systemd says {:?}", self.state),
            Stage::Up => "it is up".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn told(boot: &str, state: &str) -> Sight {
        Sight::parse(format!("boot_id {boot}\nrelease 6.12\nstate {state}\nnotes\n").as_bytes())
    }

    fn wait() -> Wait {
        Wait::after("old").expect("an id")
    }

    #[test]
    fn case_53_the_old_system_may_answer_for_as_long_as_it_likes() {
        let mut wait = wait();
        for _ in 0..100 {
            assert_eq!(wait.see(told("old", "stopping")), Stage::Old);
        }
        assert_eq!(wait.see(Sight::Nothing), Stage::Down);
        assert_eq!(wait.see(told("old", "running")), Stage::Old, "the network was down, not the machine");
        let stages = [(); 3].map(|()| wait.see(told("new", "running")));
        assert_eq!(stages, [Stage::Starting, Stage::Starting, Stage::Up]);
        assert!(Wait::after("").is_none(), "every id would look new");
    }

    #[test]
    fn only_answers_in_a_row_under_one_id_count() {
        let mut wait = wait();
        for sight in [
            told("a", "running"),
            told("a", "running"),
            told("b", "running"),
            told("b", "running"),
            Sight::Nothing,
        ] {
            assert_ne!(wait.see(sight), Stage::Up);
        }
        let stages = [(); 3].map(|()| wait.see(told("b", "running")));
        assert_eq!(stages, [Stage::Starting, Stage::Starting, Stage::Up]);
    }

    #[test]
    fn case_55_nobody_works_on_a_machine_that_still_starts() {
        let mut wait = wait();
        for _ in 0..10 {
            assert_eq!(wait.see(Sight::Booting), Stage::Starting);
        }
        for _ in 0..10 {
            assert_eq!(wait.see(told("new", "starting")), Stage::Starting);
        }
        assert_eq!(wait.words(), "systemd says \"starting\"");
        let closed = Sight::parse(b"boot_id new\nnologin /run/nologin\nstate running\nnotes\n");
        assert_eq!(wait.see(closed), Stage::Starting);
        assert_eq!(
            wait.see(told("new", "degraded")),
            Stage::Up,
            "a service that failed is no reason to wait"
        );
    }

    #[test]
    fn an_answer_without_an_account_is_none() {
        for answer in ["", "boot_id \n", "motd: welcome\n", "state running\n"] {
            assert_eq!(Sight::parse(answer.as_bytes()), Sight::Nothing, "{answer:?}");
        }
        let Sight::Account { identity, is_closed, state } =
            Sight::parse(b"hello\nboot_id b\nrelease 6.1\nnotes\nstate x\n")
        else {
            panic!("it told who it is")
        };
        assert_eq!((identity.release.as_str(), is_closed, state.as_str()), ("6.1", false, "unknown"));
    }

    proptest! {
        #[test]
        fn whatever_is_seen_it_is_up_only_after_three_answers_under_one_new_id(
            sights in proptest::collection::vec((0..4_u8, 0..3_u8), 0..40)
        ) {
            let mut wait = wait();
            let mut last: Vec<String> = Vec::new();
            for (kind, id) in sights {
                let sight = match kind {
                    0 => Sight::Nothing,
                    1 => Sight::Booting,
                    2 => told(["old", "a", "b"][usize::from(id)], "running"),
                    _ => told(["old", "a", "b"][usize::from(id)], "starting"),
                };
                match &sight {
                    Sight::Account { identity, .. } => last.push(identity.boot_id.clone()),
                    Sight::Nothing | Sight::Booting => last.clear(),
                }
                if wait.see(sight) == Stage::Up {
                    let recent = last.iter().rev().take(3).collect::<Vec<_>>();
                    prop_assert!(recent.len() == 3 && recent.iter().all(|id| *id == recent[0] && *id != "old"));
                }
            }
        }
    }
}
