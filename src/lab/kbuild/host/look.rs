//! What `doctor` tells of a build host.

use super::{BuildHost, SHORT};
use crate::lab::kbuild::failure;
use crate::lab::ssh::far::{Far as _, FarError, Script};
use std::time::Duration;

/// Within this a machine that is up answers.
const ANSWERS: Duration = Duration::from_secs(30);

/// `$1`: the directory for builds; then names of programs, or of headers in /usr/include. Tells the free room in KiB where the
/// directory is or would be, then a line each: where it is, or nothing.
const LOOK: &str = r#"case $1 in /*) dir=$1 ;; *) dir=$HOME/$1 ;; esac
while [ ! -d "$dir" ]; do dir=$(dirname "$dir"); done
df -Pk "$dir" | { read -r _; read -r _ _ _ free _; echo "$free $dir"; }
shift
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
for name do
    case $name in
    *.h) for path in "/usr/include/$name" "/usr/local/include/$name"; do [ -e "$path" ] && break; path=; done ;;
    *) path=$(command -v "$name") ;;
    esac
    echo "$path"
done"#;

impl BuildHost {
    /// A line for the room it has, and for each of these programs and headers whether it is there.
    pub async fn look_over(&self, needs: &[&str], room_kib: u64) -> Vec<(bool, String)> {
        match self.try_look_over(needs, room_kib).await {
            Ok(lines) => lines,
            Err(error) => vec![(false, format!("failed to {error}"))],
        }
    }

    async fn try_look_over(&self, needs: &[&str], room_kib: u64) -> Result<Vec<(bool, String)>, FarError> {
        let mut link = self.link.lock().await;
        link.connect("reach the build host", ANSWERS).await?;
        let args = [&[self.dir.as_str()], needs].concat();
        let told = link
            .sh(Script { what: "look at the build host", text: LOOK, args: &args, deadline: SHORT })
            .await;
        link.close().await;
        let told = told?;
        let text = String::from_utf8_lossy(&told.stdout);
        let mut lines = text.lines();
        let on = format!("on {}", self.address);
        let mut out = vec![room(lines.next().unwrap_or_default(), room_kib, &on)];
        let places = lines.chain(std::iter::repeat(""));
        out.extend(needs.iter().zip(places).map(|(name, place)| match place {
            "" => (false, format!("{on}: {}", failure::missing(name))),
            place => (true, format!("{on}: {name} at {place}")),
        }));
        Ok(out)
    }
}

/// From "KIB DIRECTORY".
fn room(line: &str, wanted_kib: u64, on: &str) -> (bool, String) {
    match line.split_once(' ').and_then(|(free, dir)| Some((free.parse::<u64>().ok()?, dir))) {
        Some((free, dir)) => (free >= wanted_kib, format!("{on}: {} GiB free at {dir}", free >> 20)),
        None => (false, format!("{on}: it does not tell how much room it has")),
    }
}
