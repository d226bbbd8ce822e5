//! kexec: the running kernel starts the next. A reset boots the machine's default entry, so nothing is left behind.

use super::Entry;
use crate::lab::ssh::far::Far;
use crate::lab::ssh::kernels::Error;
use crate::lab::ssh::kernels::call::{Call, WRITES};
use crate::lab::ssh::sut;

pub(super) async fn set_once(far: &mut dyn Far, root: &str, entry: &Entry) -> Result<(), Error> {
    let what = format!("load {} by kexec", entry.release);
    let words = entry.words.join(" ");
    let args = [entry.release.as_str(), entry.boot.as_str(), words.as_str()];
    let text = sut::KEXEC_LOAD;
    Call { what: &what, text, args: &args, deadline: WRITES }.facts(far, root).await.map(|_| ())
}

/// What is loaded, after `wish` ("look", or "unload" for a kernel of ours).
pub(super) async fn state(far: &mut dyn Far, root: &str, wish: &str) -> Result<Option<String>, Error> {
    let what = format!("{wish} the kernel loaded by kexec");
    let call = Call { what: &what, text: sut::KEXEC_STATE, args: &[wish], deadline: WRITES };
    Ok(call.facts(far, root).await?.one("loaded").map(str::to_owned))
}
