//! The page in a real browser: headless Chromium, spoken to by its DevTools protocol over two pipes.
//!
//! No request, nothing on the console, pictures with size and without labels over each other, no sideways scrolling on a
//! phone. Pictures of the page are left in target/report. Without Chromium it is skipped, but not under SB_TEST_CHROMIUM.

use super::html::recorded;
use base64::Engine;
use sched_bisect::report::html;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// Its messages end with a zero byte; 3 and 4 are its ends of the pipes. It is stopped should it hang.
const START: &str = r#"exec timeout 120 "$@" 3<&0 4>&1 0</dev/null 1>&2"#;

struct Browser {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    number: u64,
    session: Option<String>,
    events: Vec<Value>,
}

impl Browser {
    /// `None`: there is no Chromium.
    fn start(profile: &Path) -> Option<Self> {
        let has =
            Command::new("chromium").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        if !has.is_ok_and(|status| status.success()) {
            return None;
        }
        let mut command = Command::new("sh");
        command.args([
            "-c",
            START,
            "sh",
            "chromium",
            "--headless=new",
            "--remote-debugging-pipe",
            "--disable-gpu",
        ]);
        command.args(["--hide-scrollbars", "--no-first-run", "--disable-dev-shm-usage"]);
        command.arg(format!("--user-data-dir={}", profile.display()));
        if rustix::process::geteuid().is_root() {
            command.arg("--no-sandbox");
        }
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("sh");
        let (to, from) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
        Some(Self { child, to, from: BufReader::new(from), number: 0, session: None, events: Vec::new() })
    }

    fn read(&mut self) -> Value {
        let mut bytes = Vec::new();
        self.from.read_until(0, &mut bytes).expect("a message");
        assert_eq!(bytes.pop(), Some(0), "the browser has gone");
        serde_json::from_slice(&bytes).expect("JSON")
    }

    fn call(&mut self, method: &str, params: Value) -> Value {
        self.number += 1;
        let mut message = json!({"id": self.number, "method": method, "params": params});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        self.to.write_all(message.to_string().as_bytes()).expect("it listens");
        self.to.write_all(&[0]).expect("it listens");
        loop {
            let answer = self.read();
            if answer["id"] == json!(self.number) {
                assert!(answer["error"].is_null(), "{method}: {}", answer["error"]);
                return answer["result"].clone();
            }
            self.events.push(answer);
        }
    }

    /// Opens a page and waits until it is there.
    fn open(&mut self, url: &str) {
        let target = self.call("Target.createTarget", json!({"url": "about:blank"}))["targetId"].clone();
        let attached = self.call("Target.attachToTarget", json!({"targetId": target, "flatten": true}));
        self.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Network", "Log", "Runtime"] {
            self.call(&format!("{domain}.enable"), json!({}));
        }
        self.events.clear();
        self.call("Page.navigate", json!({"url": url}));
        while !self.events.iter().any(|event| event["method"] == "Page.loadEventFired") {
            let event = self.read();
            self.events.push(event);
        }
    }

    fn ask(&mut self, expression: &str) -> Value {
        let answer = self.call("Runtime.evaluate", json!({"expression": expression, "returnByValue": true}));
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    fn width(&mut self, width: u32) {
        let metrics = json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600});
        self.call("Emulation.setDeviceMetricsOverride", metrics);
    }

    fn keep(&mut self, what: &str, params: Value, path: &Path) {
        let bytes = self.call(what, params)["data"].as_str().map(str::to_owned).expect("data");
        let bytes = base64::engine::general_purpose::STANDARD.decode(bytes).expect("base64");
        assert!(bytes.len() > 20_000, "{}: {} bytes", path.display(), bytes.len());
        std::fs::write(path, bytes).expect("writes");
    }

    fn picture(&mut self, path: &Path) {
        self.keep("Page.captureScreenshot", json!({"format": "png", "captureBeyondViewport": true}), path);
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // It may have gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Labels of one picture that lie over each other, or outside of it.
const CLASHES: &str = r#"
[...document.querySelectorAll('figure svg')].flatMap(svg => {
    const frame = svg.getBoundingClientRect();
    const texts = [...svg.querySelectorAll('text')].map(t => [t.textContent, t.getBoundingClientRect()]);
    const outside = texts.filter(([_, a]) => a.left < frame.left - 1 || a.right > frame.right + 1 || a.top < frame.top - 1 ||
        a.bottom > frame.bottom + 1).map(([words]) => words + ' is outside');
    const over = texts.flatMap(([one, a], at) => texts.slice(at + 1).filter(([_, b]) => a.left < b.right - 1 && b.left < a.right - 1 &&
        a.top < b.bottom - 3 && b.top < a.bottom - 3).map(([other]) => one + ' is over ' + other));
    return [...outside, ...over];
})"#;

/// Pictures: width, height, marks.
const SIZES: &str = r#"
[...document.querySelectorAll('figure svg')].map(svg => {
    const frame = svg.getBoundingClientRect();
    return [frame.width, frame.height, svg.querySelectorAll('circle, polygon, rect, polyline').length];
})"#;

fn output() -> PathBuf {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/report");
    std::fs::create_dir_all(&dir).expect("a directory");
    dir
}

#[test]
fn a_browser_shows_the_page_without_error_request_or_overflow() {
    let dir = output();
    let profile = tempfile::tempdir().expect("a directory");
    let Some(mut browser) = Browser::start(profile.path()) else {
        assert!(
            std::env::var_os("SB_TEST_CHROMIUM").is_none(),
            "chromium is missing: apt-get install chromium"
        );
        eprintln!("skipped: no chromium");
        return;
    };
    let page = dir.join("report.html");
    std::fs::write(&page, html(&recorded())).expect("writes");
    let url = format!("file://{}", page.display());
    browser.open(&url);
    browser.width(1100);
    let sizes = browser.ask(SIZES);
    let sizes = sizes.as_array().expect("a list");
    assert_eq!(sizes.len(), 4);
    for size in sizes {
        let [width, height, marks] = [0, 1, 2].map(|at| size[at].as_f64().unwrap_or_default());
        assert!(width > 700.0 && height > 200.0 && marks > 3.0, "{sizes:?}");
    }
    assert_eq!(browser.ask(CLASHES), json!([]));
    browser.picture(&dir.join("light.png"));
    let filter = "document.getElementById('show-looked').checked = true;
        [...document.querySelectorAll('details')].forEach(d => d.open = true);
        [...document.querySelectorAll('#commit-list tbody tr')].filter(row => row.offsetHeight > 0).length";
    let looked = browser.ask(filter).as_u64().expect("a count");
    assert!((2..100).contains(&looked), "the filter shows {looked} of 200 commits");
    let folded = "[...document.querySelectorAll('details')].forEach(d => d.open = false)";
    browser.ask(folded);
    looks(&mut browser, &dir);
    let told = |method: &str| browser.events.iter().filter(|e| e["method"] == method).collect::<Vec<_>>();
    for method in ["Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown"] {
        assert!(told(method).is_empty(), "{:?}", told(method));
    }
    let requests = told("Network.requestWillBeSent");
    assert!(requests.iter().all(|r| r["params"]["request"]["url"] == json!(url)), "{requests:?}");
    assert_eq!(requests.len(), 1, "{requests:?}");
}

/// Dark, printed, on a phone.
fn looks(browser: &mut Browser, dir: &Path) {
    let dark = json!({"features": [{"name": "prefers-color-scheme", "value": "dark"}]});
    browser.call("Emulation.setEmulatedMedia", dark);
    let ground = "getComputedStyle(document.body).backgroundColor";
    assert_eq!(browser.ask(ground), "rgb(21, 23, 26)");
    browser.picture(&dir.join("dark.png"));
    // A reader with a dark screen prints on white paper.
    let print = json!({"media": "print", "features": [{"name": "prefers-color-scheme", "value": "dark"}]});
    browser.call("Emulation.setEmulatedMedia", print);
    assert_eq!(browser.ask(ground), "rgb(255, 255, 255)");
    let hidden = "[...document.querySelectorAll('details table')].filter(t => t.getBoundingClientRect().height < 20).map(t => t.id)";
    assert_eq!(browser.ask(hidden), json!([]), "what is folded is printed");
    browser.keep("Page.printToPDF", json!({"printBackground": true}), &dir.join("print.pdf"));
    browser.call("Emulation.setEmulatedMedia", json!({"media": "", "features": []}));
    browser.width(360);
    for page in [360, 320] {
        browser.width(page);
        let wide = browser.ask("document.documentElement.scrollWidth").as_u64().expect("a width");
        assert!(wide <= u64::from(page), "{wide} pixels at {page}");
    }
    browser.width(360);
    browser.picture(&dir.join("phone.png"));
}
