//! The shipped power hooks, each against a tool or a device that behaves as the real one was seen or is documented to.

use crate::common::http::{Request, serve};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use sched_bisect::lab::power::{PowerCommand, PowerState, Switch};
use sched_bisect::lab::shell::quoted;
use sched_bisect::model::{InfraFailure, InfraKind};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const HOOKS: [&str; 7] = ["ipmitool", "pdudaemon", "redfish", "virsh", "labgrid", "aws", "gce"];

fn hook(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("hooks/power-{name}.sh"))
}

/// A directory with tools that stand in for real ones, and what they keep.
struct Rack {
    dir: tempfile::TempDir,
}

/// Begins every tool: notes how it was called and knows the machine's state and what the test wants of it.
const TOOL: &str = r#"#!/bin/sh
echo "${0##*/} $*" >>"$RACK/calls"
state=$(cat "$RACK/state")
mode=$(cat "$RACK/mode")
[ "$mode" != hung ] || exec sleep 300
set_state() { [ "$mode" = stuck ] || echo "$1" >"$RACK/state"; }
for last; do :; done
"#;

impl Rack {
    fn new() -> Self {
        let rack = Self { dir: tempfile::tempdir().expect("a directory") };
        rack.set("mode", "normal");
        rack.set("state", "on");
        rack.set("calls", "");
        rack
    }

    fn set(&self, name: &str, content: &str) {
        fs::write(self.dir.path().join(name), content).expect("writes");
    }

    fn calls(&self) -> Vec<String> {
        let text = fs::read_to_string(self.dir.path().join("calls")).expect("reads");
        text.lines().map(str::to_owned).collect()
    }

    fn tool(&self, name: &str, script: &str) {
        let path = self.dir.path().join(name);
        fs::write(&path, [TOOL, script].concat()).expect("writes");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("changes the mode");
    }

    /// The hook with these variables; it looks often, and for as long as a busy host may need.
    fn hook(&self, name: &str, env: &[(&str, &str)]) -> PowerCommand {
        let path = format!("{}:{}", self.dir.path().display(), std::env::var("PATH").expect("a PATH"));
        let own = [
            ("PATH", path.as_str()),
            ("RACK", self.dir.path().to_str().expect("UTF-8")),
            ("SB_POWER_POLL", "0.01"),
            ("SB_POWER_PAUSE", "0"),
            ("SB_POWER_SETTLE", "0"),
            ("SB_POWER_WAIT", "60"),
        ];
        PowerCommand {
            command: quoted(hook(name).to_str().expect("UTF-8")),
            env: own
                .iter()
                .chain(env)
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
            owner: self.dir.path().to_owned(),
            deadline: Duration::from_secs(60),
        }
    }
}

/// With no more than a second until the state must be seen.
fn impatient(power: &PowerCommand) -> PowerCommand {
    let mut power = power.clone();
    power.env.push(("SB_POWER_WAIT".to_owned(), "1".to_owned()));
    power
}

/// Switches a machine that is on: off, off again, on, and through a cycle.
async fn assert_switches(power: &PowerCommand) {
    assert_eq!(power.state().await, Ok(PowerState::On));
    for (to, then) in [
        (Switch::Off, PowerState::Off),
        (Switch::Off, PowerState::Off),
        (Switch::Cycle, PowerState::On),
        (Switch::On, PowerState::On),
        (Switch::Cycle, PowerState::On),
    ] {
        assert_eq!(power.switch(to).await, Ok(()), "{to:?}");
        assert_eq!(power.state().await, Ok(then), "{to:?}");
    }
}

async fn fails(power: &PowerCommand, to: Switch) -> InfraFailure {
    power.switch(to).await.expect_err("fails")
}

/// The hook's failure is of this kind and names this.
async fn assert_fails(power: &PowerCommand, to: Switch, kind: InfraKind, word: &str) {
    let failure = fails(power, to).await;
    assert_eq!(failure.kind, kind, "{}", failure.reason);
    assert!(failure.reason.contains(word), "{word} is not in: {}", failure.reason);
}

/// A machine that stays on although its off was accepted is told as that; and a tool that hangs is ended.
async fn assert_stuck_and_hung(rack: &Rack, power: &PowerCommand) {
    rack.set("state", "on");
    rack.set("mode", "stuck");
    let told = "still on 1 s after it was told to be off";
    assert_fails(&impatient(power), Switch::Off, InfraKind::TryAgain, told).await;
    assert_fails(&impatient(power), Switch::Cycle, InfraKind::TryAgain, told).await;
    rack.set("mode", "hung");
    let short = PowerCommand { deadline: Duration::from_millis(500), ..power.clone() };
    assert_fails(&short, Switch::Off, InfraKind::Timeout, "SB_POWER=off").await;
    rack.set("mode", "normal");
}

#[test]
fn each_hook_prints_its_usage_when_nothing_is_asked_of_it() {
    for name in HOOKS {
        let ended = Command::new(hook(name)).env_remove("SB_POWER").output().expect("runs");
        let said = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(1), "{name}: {said}");
        assert!(said.contains("SB_POWER ") && said.contains("By hand: SB_POWER="), "{name}: {said}");
        assert!(ended.stdout.is_empty(), "{name}");
    }
}

#[test]
fn each_hook_names_the_variable_that_is_not_set() {
    for name in HOOKS {
        let ended = Command::new(hook(name)).env("SB_POWER", "status").output().expect("runs");
        let said = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(1), "{name}: {said}");
        assert!(said.lines().last().is_some_and(|line| line.ends_with(" is not set")), "{name}: {said}");
    }
}

#[tokio::test]
async fn each_hook_names_the_tool_that_is_missing() {
    let rack = Rack::new();
    let bare = rack.dir.path().join("bare");
    fs::create_dir(&bare).expect("creates");
    for tool in ["sh", "dirname", "sed", "cat", "date", "mktemp", "rm", "tail", "head", "tr", "sleep"] {
        let real =
            ["/bin", "/usr/bin"].map(|dir| Path::new(dir).join(tool)).into_iter().find(|path| path.exists());
        symlink(real.expect("POSIX has it"), bare.join(tool)).expect("links");
    }
    let all = ["HOST", "USER", "URL", "PDU", "PORT", "PASSWORD", "DOMAIN", "PLACE", "INSTANCE", "ZONE"];
    for name in HOOKS {
        let mut power = rack.hook(name, &[]);
        power.env.extend(all.map(|key| (format!("SB_POWER_{key}"), "x".to_owned())));
        power.env.push(("PATH".to_owned(), bare.display().to_string()));
        assert_fails(&power, Switch::Off, InfraKind::Missing, " is not installed; ").await;
    }
}

#[tokio::test]
async fn what_is_neither_on_nor_off_nor_cycle_nor_status_is_refused() {
    let rack = Rack::new();
    rack.tool("virsh", "echo 'shut off'");
    let power = rack.hook("virsh", &[("SB_POWER_DOMAIN", "sut1")]);
    let wrong = PowerCommand { command: format!("SB_POWER=reboot {}", power.command), ..power };
    assert_fails(&wrong, Switch::On, InfraKind::BrokenCommand, "SB_POWER is \"reboot\"").await;
}

/// ipmitool 1.8.19 as it was against a BMC (pyghmi's).
const IPMITOOL: &str = r#"
previous=
for word; do
    case $previous in -f) given=$(head -n 1 "$word") ;; -H) host=$word ;; -U) user=$word ;; esac
    [ "$word" != -E ] || given=$IPMI_PASSWORD
    previous=$word
done
echo 'Loading IANA PEN Registry...' >&2
if [ "$host" != bmc1 ]; then
    echo 'Get Auth Capabilities error' >&2
    echo 'Error: Unable to establish IPMI v2 / RMCP+ session' >&2
    exit 1
fi
[ "$user" = lab ] || { echo '> RAKP 2 message indicates an error : unauthorized name' >&2; bad=1; }
[ "$given" = "it's \"secret" ] || { echo '> RAKP 2 HMAC is invalid' >&2; bad=1; }
[ -z "${bad:-}" ] || { echo 'Error: Unable to establish IPMI v2 / RMCP+ session' >&2; exit 1; }
echo 'Discovered IPMB address 0x0' >&2
case $last in
status) echo "Chassis Power is $state" ;;
on) set_state on; echo 'Chassis Power Control: Up/On' ;;
off) set_state off; echo 'Chassis Power Control: Down/Off' ;;
esac
"#;

#[tokio::test]
async fn ipmitool_switches_and_tells_a_wrong_password_from_a_bmc_that_is_not_there() {
    let rack = Rack::new();
    rack.tool("ipmitool", IPMITOOL);
    rack.set("password", "it's \"secret\n");
    let file = rack.dir.path().join("password").display().to_string();
    let with = |host: &str, user: &str, secret: (&str, &str)| {
        rack.hook("ipmitool", &[("SB_POWER_HOST", host), ("SB_POWER_USER", user), secret])
    };
    let by_file = ("SB_POWER_PASSWORD_FILE", file.as_str());
    assert_switches(&with("bmc1", "lab", by_file)).await;
    assert_switches(&with("bmc1", "lab", ("IPMI_PASSWORD", "it's \"secret"))).await;
    assert!(!rack.calls().iter().any(|call| call.contains("secret")), "a password on a command line");
    let refused = InfraKind::BrokenCommand;
    assert_fails(&with("bmc1", "lab", ("IPMI_PASSWORD", "x")), Switch::Off, refused, "HMAC is invalid").await;
    assert_fails(&with("bmc1", "nobody", by_file), Switch::Off, refused, "unauthorized name").await;
    let gone = ("SB_POWER_PASSWORD_FILE", "/no/such/file");
    assert_fails(&with("bmc1", "lab", gone), Switch::Off, refused, "/no/such/file").await;
    assert_fails(&with("bmc2", "lab", by_file), Switch::Off, InfraKind::TryAgain, "does not answer").await;
    assert_stuck_and_hung(&rack, &with("bmc1", "lab", by_file)).await;
}

/// virsh 9.0.
const VIRSH: &str = r#"
case "$*" in
*-c\ qemu+ssh://*)
    echo 'error: failed to connect to the hypervisor' >&2
    echo 'error: Cannot recv data: Connection reset by peer' >&2
    exit 1 ;;
esac
[ "$last" = sut1 ] || { echo "error: failed to get domain '$last'" >&2; exit 1; }
case "$*" in
*domstate*) if [ "$state" = off ]; then echo 'shut off'; else echo "$state"; fi; echo ;;
*destroy*)
    [ "$state" != off ] || { echo 'error: Requested operation is not valid: domain is not running' >&2; exit 1; }
    set_state off; echo "Domain 'sut1' destroyed" ;;
*start*) set_state running; echo "Domain 'sut1' started" ;;
esac
"#;

#[tokio::test]
async fn virsh_switches_a_guest_in_whatever_state_it_is() {
    let rack = Rack::new();
    rack.tool("virsh", VIRSH);
    let power = rack.hook("virsh", &[("SB_POWER_DOMAIN", "sut1"), ("SB_POWER_URI", "qemu:///system")]);
    for state in ["running", "paused", "crashed", "in shutdown"] {
        rack.set("state", state);
        assert_switches(&power).await;
    }
    assert!(rack.calls().iter().any(|call| call == "virsh -c qemu:///system destroy --domain sut1"));
    let unknown = rack.hook("virsh", &[("SB_POWER_DOMAIN", "sut9; true")]);
    assert_fails(&unknown, Switch::Off, InfraKind::BrokenCommand, "failed to get domain 'sut9; true'").await;
    let far = rack.hook("virsh", &[("SB_POWER_DOMAIN", "sut1"), ("SB_POWER_URI", "qemu+ssh://lab/system")]);
    assert_fails(&far, Switch::Off, InfraKind::TryAgain, "Connection reset").await;
    assert_stuck_and_hung(&rack, &power).await;
}

/// labgrid-client 26.0.1, as it was against a coordinator.
const LABGRID: &str = r#"
[ "$LG_COORDINATOR" = lab:20408 ] || { echo 'Server error: Error: Could not connect to coordinator' >&2; exit 1; }
if [ "$2" != sut1 ]; then
    echo "labgrid-client: Error: place $2 is not acquired by your user, acquired by other." >&2
    exit 1
fi
case $last in
get) echo "power for place sut1 is $state" ;;
on | off) set_state "$last" ;;
esac
"#;

#[tokio::test]
async fn labgrid_switches_only_a_place_that_is_ours() {
    let rack = Rack::new();
    rack.tool("labgrid-client", LABGRID);
    let with = |place: &str, coordinator: &str| {
        rack.hook("labgrid", &[("SB_POWER_PLACE", place), ("LG_COORDINATOR", coordinator)])
    };
    assert_switches(&with("sut1", "lab:20408")).await;
    let refused = InfraKind::BrokenCommand;
    assert_fails(&with("sut2", "lab:20408"), Switch::Off, refused, "acquired by other").await;
    assert_fails(&with("sut1", "gone:1"), Switch::Off, InfraKind::TryAgain, "connect to coordinator").await;
    assert_stuck_and_hung(&rack, &with("sut1", "lab:20408")).await;
}

/// AWS CLI 2.9; a stopped instance has been "stopping" before.
const AWS: &str = r#"
case "$*" in
*i-0001*) ;;
*)
    echo "An error occurred (InvalidInstanceID.NotFound) when calling the DescribeInstances operation: The instance ID does not exist" >&2
    exit 254 ;;
esac
case $2 in
describe-instances)
    case $state in
    stopping) set_state off; echo stopping ;;
    pending) set_state on; echo pending ;;
    on) echo running ;;
    off) echo stopped ;;
    *) echo "$state" ;;
    esac ;;
stop-instances) set_state stopping ;;
start-instances)
    [ "$mode" != full ] || {
        echo 'An error occurred (InsufficientInstanceCapacity) when calling the StartInstances operation: none left' >&2
        exit 254
    }
    set_state pending ;;
reboot-instances) ;;
esac
"#;

#[tokio::test]
async fn an_ec2_instance_is_rebooted_where_it_is_unless_stop_and_start_are_asked_for() {
    let rack = Rack::new();
    rack.tool("aws", AWS);
    let with = |more: &[(&str, &str)]| {
        rack.hook(
            "aws",
            &[&[("SB_POWER_INSTANCE", "i-0001"), ("SB_POWER_REGION", "eu-west-1")], more].concat(),
        )
    };
    assert_switches(&with(&[])).await;
    let calls = |word: &str| rack.calls().iter().filter(|call| call.contains(word)).count();
    assert_eq!((calls("reboot-instances"), calls("stop-instances")), (1, 1));
    assert!(rack.calls().iter().all(|call| call.contains("--region eu-west-1")));
    assert_eq!(with(&[("SB_POWER_CYCLE", "stop-start")]).switch(Switch::Cycle).await, Ok(()));
    assert_eq!((calls("reboot-instances"), calls("stop-instances")), (1, 2));
    let unknown = rack.hook("aws", &[("SB_POWER_INSTANCE", "i-9999")]);
    assert_fails(&unknown, Switch::Off, InfraKind::BrokenCommand, "InvalidInstanceID.NotFound").await;
    rack.set("state", "terminated");
    assert_fails(&with(&[]), Switch::On, InfraKind::BrokenCommand, "i-0001 is terminated").await;
    rack.set("state", "off");
    rack.set("mode", "full");
    assert_fails(&with(&[]), Switch::On, InfraKind::TryAgain, "InsufficientInstanceCapacity").await;
}

/// gcloud as its reference has it.
const GCLOUD: &str = r#"
if [ "$4" != sut1 ]; then
    echo 'ERROR: (gcloud.compute.instances.describe) Could not fetch resource:' >&2
    echo " - The resource 'projects/p/zones/z/instances/$4' was not found" >&2
    exit 1
fi
case $3 in
describe) case $state in on) echo RUNNING ;; off) echo TERMINATED ;; esac ;;
stop) set_state off ;;
start) set_state on ;;
reset) ;;
esac
"#;

#[tokio::test]
async fn a_compute_engine_instance_is_reset_where_it_is() {
    let rack = Rack::new();
    rack.tool("gcloud", GCLOUD);
    let with =
        |name: &str| rack.hook("gce", &[("SB_POWER_INSTANCE", name), ("SB_POWER_ZONE", "europe-west4-a")]);
    assert_switches(&with("sut1")).await;
    assert!(rack.calls().iter().any(|call| call.starts_with("gcloud compute instances reset sut1 --zone")));
    assert_fails(&with("sut9"), Switch::Off, InfraKind::BrokenCommand, "was not found").await;
    rack.set("mode", "stuck");
    assert_fails(&impatient(&with("sut1")), Switch::Off, InfraKind::TryAgain, "still on").await;
}

/// PDUDaemon 0.0.8: answers at once, whatever comes of it.
fn pdudaemon(asked: &Arc<Mutex<Vec<String>>>) -> String {
    let asked = Arc::clone(asked);
    serve(move |request| {
        asked.lock().expect("no panic").push(request.path.clone());
        match request.path.contains("hostname=rack2&") {
            true => (200, "OK - accepted request\n".to_owned()),
            false => (500, "Invalid request\n".to_owned()),
        }
    })
}

#[tokio::test]
async fn what_pdudaemon_accepts_is_done_once_the_machine_is_silent() {
    let rack = Rack::new();
    rack.tool("ping", "[ \"$last $state\" = 'sut1 on' ]");
    let asked = Arc::default();
    let url = pdudaemon(&asked);
    let with = |pdu: &str, more: &[(&str, &str)]| {
        let own = [("SB_POWER_URL", url.as_str()), ("SB_POWER_PDU", pdu), ("SB_POWER_PORT", "7")];
        rack.hook("pdudaemon", &[&own, more].concat())
    };
    let pinged = with("rack2", &[("SB_POWER_PING", "sut1")]);
    let told = "still on 1 s after it was told to be off";
    assert_fails(&impatient(&pinged), Switch::Off, InfraKind::TryAgain, told).await;
    rack.set("state", "off");
    assert_eq!(pinged.switch(Switch::Cycle).await, Ok(()));
    assert_eq!(with("rack2", &[]).switch(Switch::Off).await, Ok(()), "after a while, unseen");
    let paths = asked.lock().expect("no panic").clone();
    let path = |action: &str| format!("/power/control/{action}?hostname=rack2&port=7");
    assert_eq!(paths, [path("off"), path("off"), path("on"), path("off")]);

    assert_fails(&with("rack9", &[]), Switch::Off, InfraKind::BrokenCommand, "Invalid request").await;
    let told = pinged.state().await.expect_err("it cannot tell");
    assert_eq!(told.kind, InfraKind::BrokenCommand);
    assert!(told.reason.contains("does not tell whether a socket is on"), "{}", told.reason);
    let down = [("SB_POWER_URL", "http://127.0.0.1:1"), ("SB_POWER_PDU", "rack2"), ("SB_POWER_PORT", "7")];
    assert_fails(&rack.hook("pdudaemon", &down), Switch::Off, InfraKind::TryAgain, "does not answer").await;
}

/// A BMC with one system, which takes two looks to go off.
struct Bmc {
    state: &'static str,
    looks: u32,
    stuck: bool,
    busy: bool,
    resets: Vec<String>,
}

fn redfish(bmc: &Arc<Mutex<Bmc>>, systems: &'static [&'static str]) -> String {
    let bmc = Arc::clone(bmc);
    serve(move |request| {
        let mut bmc = bmc.lock().expect("no panic");
        answer(&mut bmc, systems, request)
    })
}

fn answer(bmc: &mut Bmc, systems: &[&str], request: &Request) -> (u16, String) {
    let error = |text: &str| format!("{{\"error\": {{\"code\": \"x\", \"message\": \"{text}\"}}}}");
    if request.authorization != format!("Basic {}", BASE64.encode("lab:it's \"a\\secret")) {
        return (401, error("no"));
    }
    if bmc.busy {
        return (503, error("the service is starting"));
    }
    match (request.method.as_str(), request.path.as_str()) {
        ("GET", "/redfish/v1/Systems") => {
            let members: Vec<String> =
                systems.iter().map(|name| format!("{{ \"@odata.id\":\"{name}\" }}")).collect();
            let own = "\"@odata.id\": \"/redfish/v1/Systems\"";
            (200, format!("{{{own},\n \"Members@odata.count\": 1, \"Members\": [{}]}}", members.join(", ")))
        }
        ("GET", "/redfish/v1/Systems/1") => {
            bmc.looks = bmc.looks.saturating_sub(1);
            let state = if bmc.looks > 0 { "PoweringOff" } else { bmc.state };
            (
                200,
                format!(
                    "{{\"Id\": \"1\", \"Status\": {{\"State\": \"Enabled\"}}, \"PowerState\" : \"{state}\"}}"
                ),
            )
        }
        ("POST", "/redfish/v1/Systems/1/Actions/ComputerSystem.Reset") => {
            bmc.resets.push(request.body.clone());
            let to = if request.body.contains("ForceOff") { "Off" } else { "On" };
            if !bmc.stuck {
                (bmc.state, bmc.looks) = (to, if to == "Off" { 3 } else { 0 });
            }
            (204, String::new())
        }
        _ => (404, error("no such resource")),
    }
}

#[tokio::test]
async fn redfish_waits_until_the_machine_is_where_it_was_told_to_be() {
    let rack = Rack::new();
    // The real curl, seen by what it is called with.
    rack.tool("curl", "exec /usr/bin/curl \"$@\"");
    let bmc =
        Arc::new(Mutex::new(Bmc { state: "On", looks: 0, stuck: false, busy: false, resets: Vec::new() }));
    let url = redfish(&bmc, &["/redfish/v1/Systems/1"]);
    let with = |secret: &str, more: &[(&str, &str)]| {
        let own = [("SB_POWER_URL", url.as_str()), ("SB_POWER_USER", "lab"), ("SB_POWER_PASSWORD", secret)];
        rack.hook("redfish", &[&own, more].concat())
    };
    let secret = "it's \"a\\secret";
    let power = with(secret, &[]);
    assert_switches(&power).await;
    let resets = bmc.lock().expect("no panic").resets.clone();
    let (on, off) = ("{\"ResetType\": \"On\"}", "{\"ResetType\": \"ForceOff\"}");
    assert_eq!(resets, [off, on, off, on]);
    assert!(!rack.calls().iter().any(|call| call.contains("secret")), "a password on a command line");

    let refused = InfraKind::BrokenCommand;
    assert_fails(&with("x", &[]), Switch::Off, refused, "refuses user or password (401)").await;
    let other = with(secret, &[("SB_POWER_SYSTEM", "/redfish/v1/Systems/9")]);
    assert_fails(&other, Switch::Off, refused, "no such resource").await;
    bmc.lock().expect("no panic").busy = true;
    assert_fails(&power, Switch::Off, InfraKind::TryAgain, "the service is starting").await;
    bmc.lock().expect("no panic").busy = false;
    bmc.lock().expect("no panic").stuck = true;
    let told = "still on 1 s after it was told to be off";
    assert_fails(&impatient(&power), Switch::Off, InfraKind::TryAgain, told).await;
    rack.set("mode", "hung");
    let short = PowerCommand { deadline: Duration::from_millis(500), ..power };
    assert_fails(&short, Switch::Off, InfraKind::Timeout, "SB_POWER=off").await;
}

#[tokio::test]
async fn redfish_asks_which_of_several_systems_is_meant() {
    let rack = Rack::new();
    let bmc =
        Arc::new(Mutex::new(Bmc { state: "On", looks: 0, stuck: false, busy: false, resets: Vec::new() }));
    let url = redfish(&bmc, &["/redfish/v1/Systems/1", "/redfish/v1/Systems/2"]);
    let env =
        [("SB_POWER_URL", url.as_str()), ("SB_POWER_USER", "lab"), ("SB_POWER_PASSWORD", "it's \"a\\secret")];
    let several = rack.hook("redfish", &env);
    assert_fails(&several, Switch::Off, InfraKind::BrokenCommand, "/redfish/v1/Systems/2").await;
    let one = rack.hook("redfish", &[&env[..], &[("SB_POWER_SYSTEM", "/redfish/v1/Systems/1")]].concat());
    assert_eq!(one.state().await, Ok(PowerState::On));
}
