//! Signals: the first Ctrl-C finishes the open step, the second ends it, the third leaves at once. SIGTERM and SIGHUP
//! end it: whoever sends them does not wait for a build. Everything stays resumable.

use super::exit;
use crate::driver::Stop;
use crate::report::say;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::{Receiver, channel};

/// Begins to listen; the requests come out of the receiver.
pub(super) fn listen() -> std::io::Result<Receiver<Stop>> {
    let (send, receive) = channel(4);
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    tokio::task::spawn(async move {
        let mut interrupts = 0;
        loop {
            let stop = tokio::select! {
                _ = interrupt.recv() => {
                    interrupts += 1;
                    if interrupts == 1 { Stop::AfterStep } else { Stop::Now }
                }
                _ = terminate.recv() => Stop::Now,
                _ = hang_up.recv() => Stop::Now,
            };
            if interrupts >= 3 {
                std::process::exit(exit::INTERRUPTED.into());
            }
            say(match stop {
                Stop::AfterStep => {
                    "interrupt: finishing the step that runs; once more ends it, a third time leaves at once"
                }
                Stop::Now => "interrupt: ending the step that runs; it will be repeated",
            });
            if send.send(stop).await.is_err() {
                return;
            }
        }
    });
    Ok(receive)
}
