//! A browser without a screen: Chromium, driven by the protocol of its developer tools through two
//! pipes.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::{Value, json};

use crate::program::skipped;
use crate::skips::Need;

/// No test needs the browser for so long, in seconds: one that does hangs.
const DEADLINE: &str = "120";

/// A browser with one tab, until this is dropped.
pub struct Browser {
    child: Child,
    commands: File,
    answers: BufReader<File>,
    sent: u64,
    session: Option<String>,
    events: Vec<Value>,
    // Holds the pipes and what the browser keeps.
    _folder: tempfile::TempDir,
}

impl Drop for Browser {
    fn drop(&mut self) {
        // `timeout` hands the signal on to the browser.
        let _ = Command::new("kill").arg(self.child.id().to_string()).status();
        let _ = self.child.wait();
    }
}

/// The name of the program, if this machine has it.
fn program() -> Option<&'static str> {
    let runs = |name: &&str| {
        let version = Command::new(name).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        version.is_ok_and(|status| status.success())
    };
    ["chromium", "chromium-browser", "google-chrome"].into_iter().find(runs)
}

impl Browser {
    /// Starts the browser; `None`, and a skip of the test, where there is none.
    pub fn start(test: &str) -> Option<Browser> {
        let Some(program) = program() else {
            skipped(Need::Browser, test);
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        let [commands, answers] = ["commands", "answers"].map(|name| folder.path().join(name));
        for pipe in [&commands, &answers] {
            mknodat(CWD, pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        }
        // The browser reads commands from file descriptor 3 and writes to 4; each open waits for
        // the other side.
        let script = "exec timeout \"$1\" \"$2\" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run \
                      --remote-debugging-pipe --user-data-dir=\"$3/profile\" about:blank 3<\"$3/commands\" 4>\"$3/answers\"";
        let child = Command::new("sh")
            .args(["-c", script, "sh", DEADLINE, program])
            .arg(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let commands = File::options().write(true).open(commands).unwrap();
        let answers = BufReader::new(File::open(answers).unwrap());
        let mut browser =
            Browser { child, commands, answers, sent: 0, session: None, events: Vec::new(), _folder: folder };
        let tab = browser.call("Target.createTarget", json!({"url": "about:blank"}))["targetId"].clone();
        let attached = browser.call("Target.attachToTarget", json!({"targetId": tab, "flatten": true}));
        browser.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser.call("Page.setLifecycleEventsEnabled", json!({"enabled": true}));
        Some(browser)
    }

    /// Calls a method of the protocol, and returns its result.
    ///
    /// # Panics
    /// If the browser says that it failed, or ends.
    pub fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.sent += 1;
        let mut command = json!({"id": self.sent, "method": method, "params": parameters});
        if let Some(session) = &self.session {
            command["sessionId"] = json!(session);
        }
        let mut bytes = serde_json::to_vec(&command).unwrap();
        bytes.push(0);
        self.commands.write_all(&bytes).unwrap();
        loop {
            let message = self.message();
            if message["id"] == self.sent {
                assert!(message["error"].is_null(), "{method}: {}", message["error"]);
                return message["result"].clone();
            }
            self.events.push(message);
        }
    }

    fn message(&mut self) -> Value {
        let mut bytes = Vec::new();
        self.answers.read_until(0, &mut bytes).unwrap();
        assert_eq!(bytes.pop(), Some(0), "the browser ended");
        serde_json::from_slice(&bytes).unwrap()
    }

    /// Opens a file, and waits until it is loaded. Returns the events until then.
    pub fn open(&mut self, file: &Path) -> Vec<Value> {
        self.visit(&format!("file://{}", file.display()))
    }

    /// As [`Browser::open`], of an address.
    pub fn visit(&mut self, address: &str) -> Vec<Value> {
        self.events.clear();
        let loader = self.call("Page.navigate", json!({"url": address}))["loaderId"].clone();
        let is_loaded = |event: &Value| {
            event["method"] == "Page.lifecycleEvent"
                && event["params"]["name"] == "load"
                && event["params"]["loaderId"] == loader
        };
        while !self.events.iter().any(is_loaded) {
            let event = self.message();
            self.events.push(event);
        }
        std::mem::take(&mut self.events)
    }

    /// The value of an expression in the page.
    ///
    /// # Panics
    /// If it throws.
    pub fn value(&mut self, expression: &str) -> Value {
        let found = self
            .call("Runtime.evaluate", json!({"expression": expression, "returnByValue": true, "awaitPromise": true}));
        assert!(found["exceptionDetails"].is_null(), "{expression}: {}", found["exceptionDetails"]);
        found["result"]["value"].clone()
    }

    /// Presses a key.
    pub fn press(&mut self, key: &str, text: Option<&str>) {
        let mut down = json!({"type": "keyDown", "key": key, "code": key});
        if key == "Tab" {
            down["windowsVirtualKeyCode"] = json!(9);
        }
        if key == "Enter" {
            down["windowsVirtualKeyCode"] = json!(13);
        }
        if let Some(text) = text {
            down["text"] = json!(text);
        }
        self.call("Input.dispatchKeyEvent", down);
        self.call("Input.dispatchKeyEvent", json!({"type": "keyUp", "key": key, "code": key}));
    }

    /// What the console had to say, and errors, since the page was opened or this was asked.
    pub fn complaints(&mut self) -> Vec<Value> {
        complaints(&std::mem::take(&mut self.events))
    }
}

/// The events that are messages of the console, errors, or entries of the log.
pub fn complaints(events: &[Value]) -> Vec<Value> {
    let methods = ["Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"];
    events.iter().filter(|event| methods.iter().any(|method| event["method"] == *method)).cloned().collect()
}
