//! A pool of three hosts, each a network namespace with its own address and a real sshd; the
//! program runs in a fourth.
//!
//! ```text
//! hub 10.77.0.1 ── bridge ─┬─ node-1 10.77.0.11  sshd
//!                          ├─ node-2 10.77.0.12  sshd
//!                          └─ node-3 10.77.0.13  sshd
//! ```
//!
//! The namespaces share the machine's files, as the hosts of a pool share a file system. Each test
//! makes its own, so that tests run side by side with the same addresses, and removes them when it
//! ends; a server that is left by a killed test ends by itself after [`SERVER_SECONDS`]. The tests
//! need root, `ip` and `sshd`, and are skipped where these are missing.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::program::{Made, Ran, ran, run_well, skipped, tables};
use crate::runs::elastic::many_waves;
use crate::runs::survival::waves;
use crate::seaweed::BucketServer;
use crate::skips::Need;

/// What the variables of all hosts begin with.
const SECRET: &str = "it's $a secret";

/// A server that outlives its test is ended after this time: many times what the longest test takes
/// (32 s).
const SERVER_SECONDS: &str = "900";

/// Namespaces, bridge and servers, until they are dropped.
struct NetworkHosts {
    /// What distinguishes the names of these namespaces from those of others.
    test: &'static str,
    folder: tempfile::TempDir,
    servers: Vec<Child>,
}

impl Drop for NetworkHosts {
    fn drop(&mut self) {
        for server in &mut self.servers {
            let _ = server.kill();
            let _ = server.wait();
        }
        for node in 0..=3 {
            // Sessions outlive their server, and servers the `timeout` that was killed.
            for process in self.processes(node) {
                let _ = Command::new("kill").args(["-s", "KILL", &process.to_string()]).output();
            }
            let _ = Command::new("ip").args(["netns", "delete", &self.name(node)]).output();
        }
    }
}

fn well(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}\n{}", String::from_utf8_lossy(&output.stderr));
    output
}

impl NetworkHosts {
    fn name(&self, node: usize) -> String {
        format!("nigh-{}-{}-{node}", self.test, std::process::id())
    }

    /// The processes in a namespace.
    fn processes(&self, node: usize) -> Vec<u32> {
        let output = Command::new("ip").args(["netns", "pids", &self.name(node)]).output().unwrap();
        String::from_utf8_lossy(&output.stdout).split_whitespace().filter_map(|id| id.parse().ok()).collect()
    }

    /// The process of a run on a node.
    fn worker(&self, node: usize) -> Option<u32> {
        let is_worker =
            |id: &u32| std::fs::read(format!("/proc/{id}/cmdline")).is_ok_and(|line| line.ends_with(b"nigh\0worker\0"));
        self.processes(node).into_iter().find(is_worker)
    }

    /// Makes them; `None`, with the reason printed, where that is not possible.
    fn new(test: &'static str) -> Option<NetworkHosts> {
        let has = |program: &str| {
            Command::new("sh").args(["-c", &format!("command -v {program}")]).output().is_ok_and(|o| o.status.success())
        };
        if !is_root() || !has("ip") || !has("ssh") || !Path::new("/usr/sbin/sshd").exists() {
            skipped(Need::Pool, &format!("pool over ssh: {test}"));
            return None;
        }
        let mut hosts = NetworkHosts { test, folder: tempfile::tempdir().unwrap(), servers: Vec::new() };
        let hub = hosts.name(0);
        let probe = Command::new("ip").args(["netns", "add", &hub]).output().unwrap();
        if !probe.status.success() {
            skipped(Need::Pool, &format!("pool over ssh: {test}"));
            return None;
        }
        let ip = |arguments: &str| well(Command::new("ip").args(arguments.split_whitespace()));
        ip(&format!("-n {hub} link set lo up"));
        ip(&format!("-n {hub} link add bridge type bridge"));
        ip(&format!("-n {hub} addr add 10.77.0.1/24 dev bridge"));
        ip(&format!("-n {hub} link set bridge up"));
        std::fs::create_dir_all("/run/sshd").unwrap();
        let folder = hosts.path("");
        for key in ["host", "user"] {
            let path = hosts.path(key);
            well(Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f", path.to_str().unwrap()]));
        }
        let host_key = std::fs::read_to_string(hosts.path("host.pub")).unwrap();
        let mut known = String::new();
        let mut client = format!(
            "UserKnownHostsFile {0}known\nStrictHostKeyChecking yes\nIdentityFile {0}user\nIdentitiesOnly yes\nUser root\n",
            folder.display()
        );
        for node in 1..=3 {
            let ns = hosts.name(node);
            ip(&format!("netns add {ns}"));
            ip(&format!("-n {hub} link add node{node} type veth peer name eth0 netns {ns}"));
            ip(&format!("-n {hub} link set node{node} master bridge up"));
            ip(&format!("-n {ns} link set lo up"));
            ip(&format!("-n {ns} addr add 10.77.0.1{node}/24 dev eth0"));
            ip(&format!("-n {ns} link set eth0 up"));
            writeln!(known, "10.77.0.1{node} {host_key}").unwrap();
            writeln!(client, "Host node-{node}\n  HostName 10.77.0.1{node}").unwrap();
            // A home of its own: what the user's shell does when it starts is nothing of this test.
            let server = format!(
                "ListenAddress 10.77.0.1{node}\nHostKey {0}host\nAuthorizedKeysFile {0}user.pub\nStrictModes no\nUsePAM no\n\
                 PidFile none\nPermitRootLogin prohibit-password\nPasswordAuthentication no\nSetEnv HOME={0} XDG_CACHE_HOME={0}cache\n",
                folder.display()
            );
            let config = hosts.path(&format!("sshd-{node}"));
            std::fs::write(&config, server).unwrap();
            let log = std::fs::File::create(hosts.path(&format!("sshd-{node}.log"))).unwrap();
            let mut command = Command::new("ip");
            command.args(["netns", "exec", &ns, "timeout", SERVER_SECONDS]);
            command.args(["/usr/sbin/sshd", "-D", "-e", "-f", config.to_str().unwrap()]);
            hosts.servers.push(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().unwrap());
        }
        // The first match counts: what is for all comes last.
        let (all, nodes) = client.split_at(client.find("Host node-1").unwrap());
        std::fs::write(hosts.path("client"), format!("{nodes}Host *\n{all}")).unwrap();
        std::fs::write(hosts.path("known"), known).unwrap();
        let begun = Instant::now();
        for node in 1..=3 {
            let log = || std::fs::read_to_string(hosts.path(&format!("sshd-{node}.log"))).unwrap();
            while !log().contains("Server listening") {
                assert!(begun.elapsed() < Duration::from_secs(60), "{}", log());
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        Some(hosts)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A config of one process on each host.
    fn config(&self, name: &str, more: &str) -> String {
        let mut text = format!(
            "workers = 1\nssh = [\"ssh\", \"-F\", {:?}]\nkeys = {:?}\n{more}\n",
            self.path("client"),
            self.path("keys")
        );
        for node in 1..=3 {
            let address = format!("10.77.0.1{node}");
            writeln!(text, "[[hosts]]\nname = \"node-{node}\"\naddress = \"{address}\"\nport = \"2101-2199\"").unwrap();
            writeln!(text, "environment = {{ NIGH_TEST = \"{SECRET} of {node}\" }}").unwrap();
        }
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// What runs a command on the hub.
    fn on_hub(&self) -> [String; 4] {
        ["ip".into(), "netns".into(), "exec".into(), self.name(0)]
    }

    /// A command of the program on the hub.
    fn nigh(&self, arguments: &[&str]) -> Command {
        let hub = self.on_hub();
        let mut command = Command::new(&hub[0]);
        command.args(&hub[1..]).arg(env!("CARGO_BIN_EXE_nigh")).args(arguments);
        command.current_dir(env!("CARGO_MANIFEST_DIR")).stdin(Stdio::null());
        command
    }

    /// Puts the link of a node up or down.
    fn link(&self, node: usize, state: &str) {
        let node = format!("node{node}");
        well(Command::new("ip").args(["-n", &self.name(0), "link", "set", &node, state]));
    }
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

/// The processes of this machine with a text among their arguments.
fn seen_by_all(text: &str) -> Vec<String> {
    let processes = std::fs::read_dir("/proc").unwrap().filter_map(|entry| Some(entry.ok()?.path().join("cmdline")));
    // One that ended meanwhile shows nothing.
    let arguments = processes.filter_map(|path| Some(String::from_utf8_lossy(&std::fs::read(path).ok()?).into_owned()));
    arguments.filter(|arguments| arguments.contains(text)).collect()
}

/// Disturbs a run when something is written; gives how it ended.
fn disturbed(mut command: Command, store: &Path, disturb: impl FnOnce()) -> Ran {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let begun = Instant::now();
    let written = || {
        let works =
            std::fs::read_dir(store.join("_nigh")).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
        works.into_iter().any(|work| work.join("week=2024-01-08/documents").exists())
    };
    while !written() {
        if let Some(status) = child.try_wait().unwrap() {
            let output = child.wait_with_output().unwrap();
            panic!("it ended before it was disturbed: {status} {}", String::from_utf8_lossy(&output.stderr));
        }
        assert!(begun.elapsed() < Duration::from_secs(120), "nothing is written");
        std::thread::sleep(Duration::from_millis(1));
    }
    disturb();
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ran { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// Three hosts, keys, a job of many waves, and a config by which the hosts run the program where it
/// lies.
struct PoolOfHosts {
    hosts: NetworkHosts,
    config: String,
    job: String,
}

impl PoolOfHosts {
    /// Makes all of it; `None`, and a skip of the test, where that is not possible.
    fn new(test: &'static str) -> Option<PoolOfHosts> {
        let hosts = NetworkHosts::new(test)?;
        run_well(&["pool", "keys", "--processes", "3", "--out", hosts.path("keys").to_str().unwrap()]);
        // A peer that is silent for 4 s is given up: the tests below freeze one, or cut its link,
        // for more or for less.
        let program_in_place = format!("binary = {:?}\ntimeout = \"4s\"\nrestarts = 10", env!("CARGO_BIN_EXE_nigh"));
        let config = hosts.config("pool.toml", &program_in_place);
        let job = waves(hosts.folder.path()).to_str().unwrap().to_owned();
        Some(PoolOfHosts { hosts, config, job })
    }

    fn store(&self) -> PathBuf {
        self.hosts.path("store")
    }

    /// The command that runs the job into a store, by a config.
    fn command(&self, config: &str, store: &Path) -> Command {
        self.hosts.nigh(&["run", &self.job, "--config", config, "--store", store.to_str().unwrap()])
    }

    /// Runs the job undisturbed, by the config that runs the program where it lies.
    fn run(&self) -> Ran {
        ran(&mut self.command(&self.config, &self.store()))
    }

    /// Runs the job, and disturbs it once something is written.
    fn run_disturbed(&self, disturb: impl FnOnce()) -> Ran {
        disturbed(self.command(&self.config, &self.store()), &self.store(), disturb)
    }

    /// `nigh pool check`, with more arguments.
    fn check(&self, more: &[&str]) -> Ran {
        ran(&mut self.hosts.nigh(&[&["pool", "check", "--config", &self.config], more].concat()))
    }

    /// The process of the run on a node.
    fn worker(&self, node: usize) -> u32 {
        self.hosts.worker(node).unwrap_or_else(|| panic!("no process of the run is on node-{node}"))
    }

    /// Sends a signal to the process of the run on a node.
    fn signal(&self, name: &str, node: usize) {
        well(Command::new("kill").args(["-s", name, &self.worker(node).to_string()]));
    }

    /// Cuts the link of a node for some time.
    fn cut_link(&self, node: usize, time: Duration) {
        self.hosts.link(node, "down");
        std::thread::sleep(time);
        self.hosts.link(node, "up");
    }
}

/// The tables of [`waves`], made by one process on this machine; once for all tests.
fn tables_of_one_process() -> &'static BTreeMap<String, Vec<u8>> {
    static TABLES: OnceLock<BTreeMap<String, Vec<u8>>> = OnceLock::new();
    TABLES.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        Made::with_job(&waves(folder.path()), &[]).tables()
    })
}

/// A run ended well: its week has the bytes that one process makes, and no unfinished work is left
/// in the store.
fn assert_as_one_process(ran: &Ran, store: &Path) {
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(tables(&store.join("week=2024-01-08")) == *tables_of_one_process(), "the tables differ");
    let left: Vec<_> =
        std::fs::read_dir(store.join("_nigh")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().starts_with("work")), "{left:?}");
}

#[test]
fn three_hosts_give_the_bytes_of_one_process() {
    let Some(pool) = PoolOfHosts::new("plain") else { return };
    let plain = pool.run();
    assert_as_one_process(&plain, &pool.store());
    assert!(!plain.stderr.contains("restart"), "{}", plain.stderr);
}

#[test]
fn the_program_is_copied_to_the_hosts_once() {
    let Some(pool) = PoolOfHosts::new("copied") else { return };
    let config = pool.hosts.config("copy.toml", "binary = \"copy\"");
    for store in ["copied", "copied-again"] {
        let store = pool.hosts.path(store);
        assert_as_one_process(&ran(&mut pool.command(&config, &store)), &store);
    }
    // The hosts share their files: one copy serves all of them.
    assert_eq!(std::fs::read_dir(pool.hosts.path("cache/nigh")).unwrap().count(), 1);
}

#[test]
fn a_process_that_is_killed_on_its_host_is_started_again() {
    let Some(pool) = PoolOfHosts::new("killed") else { return };
    let killed = pool.run_disturbed(|| pool.signal("KILL", 2));
    assert_as_one_process(&killed, &pool.store());
    assert!(killed.stderr.contains("process 1 on node-2 was killed, or the connection"), "{}", killed.stderr);
    assert!(killed.stderr.contains("nigh [cluster 2024-01-08, process 1, epoch 1]: "), "{}", killed.stderr);
}

#[test]
fn a_process_has_the_variables_of_its_host_and_no_command_line_shows_them() {
    let Some(pool) = PoolOfHosts::new("variables") else { return };
    let ran = pool.run_disturbed(|| {
        for node in 1..=3 {
            let wanted = format!("NIGH_TEST={SECRET} of {node}");
            let variables = std::fs::read(format!("/proc/{}/environ", pool.worker(node))).unwrap();
            assert!(variables.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes()), "{node}");
        }
        assert_eq!(seen_by_all(SECRET), Vec::<String>::new());
    });
    assert_as_one_process(&ran, &pool.store());
}

#[test]
fn a_process_that_freezes_on_its_host_is_killed_and_started_again() {
    let Some(pool) = PoolOfHosts::new("frozen") else { return };
    let frozen = pool.run_disturbed(|| pool.signal("STOP", 3));
    assert_as_one_process(&frozen, &pool.store());
    assert!(frozen.stderr.contains("process 2 on node-3 has sent nothing"), "{}", frozen.stderr);
    assert_eq!(pool.hosts.worker(3), None, "the frozen process is still there");
}

#[test]
fn a_link_that_is_down_for_longer_than_the_timeout_restarts_the_run() {
    let Some(pool) = PoolOfHosts::new("down") else { return };
    // Twice the timeout.
    let down = pool.run_disturbed(|| pool.cut_link(2, Duration::from_secs(8)));
    assert_as_one_process(&down, &pool.store());
    assert!(down.stderr.contains("on node-2") && down.stderr.contains("(restart 1 of 10)"), "{}", down.stderr);
}

#[test]
fn a_link_that_is_up_again_within_the_timeout_restarts_nothing() {
    let Some(pool) = PoolOfHosts::new("blip") else { return };
    // A quarter of the timeout.
    let blip = pool.run_disturbed(|| pool.cut_link(2, Duration::from_secs(1)));
    assert_as_one_process(&blip, &pool.store());
    assert!(!blip.stderr.contains("restart"), "{}", blip.stderr);
}

#[test]
fn a_run_that_loses_a_host_for_good_goes_on_with_the_others() {
    let Some(pool) = PoolOfHosts::new("lost") else { return };
    let text = std::fs::read_to_string(&pool.config).unwrap();
    std::fs::write(&pool.config, format!("min-processes = 2\ngrace = \"6s\"\n{text}")).unwrap();
    let lost = pool.run_disturbed(|| pool.hosts.link(2, "down"));
    assert_as_one_process(&lost, &pool.store());
    let log = &lost.stderr;
    assert!(log.contains("process 1 on node-2 is lost: the run goes on with 2 of 3 processes"), "{log}");
}

#[test]
fn a_run_goes_on_without_a_host_that_ssh_reaches_and_on_which_no_process_can_begin() {
    let Some(pool) = PoolOfHosts::new("unfit") else { return };
    let text = std::fs::read_to_string(&pool.config).unwrap();
    // No machine has this address.
    let text = text.replace("address = \"10.77.0.13\"", "address = \"10.77.0.13\"\nlisten = \"192.0.2.1\"");
    std::fs::write(&pool.config, format!("min-processes = 2\ngrace = \"1s\"\n{text}")).unwrap();
    let ran = pool.run();
    assert_as_one_process(&ran, &pool.store());
    let log = &ran.stderr;
    assert!(log.contains("process 2 on node-3: cannot listen on 192.0.2.1"), "{log}");
    assert!(log.contains("process 2 on node-3 is lost: the run goes on with 2 of 3 processes"), "{log}");
}

#[test]
fn a_run_that_begins_with_one_host_takes_the_others_in() {
    let Some(pool) = PoolOfHosts::new("joined") else { return };
    let text = std::fs::read_to_string(&pool.config).unwrap();
    std::fs::write(&pool.config, format!("min-processes = 1\ngrace = \"1s\"\nrejoin = \"100ms\"\n{text}")).unwrap();
    // A first look at a host whose link was just put up may take some seconds: the crawl has many
    // waves.
    many_waves(pool.hosts.folder.path(), 500, 40);
    let undisturbed = Made::with_job(Path::new(&pool.job), &[]);
    [2, 3].into_iter().for_each(|node| pool.hosts.link(node, "down"));
    let joined = pool.run_disturbed(|| [2, 3].into_iter().for_each(|node| pool.hosts.link(node, "up")));
    assert_eq!(joined.code, Some(0), "{}", joined.stderr);
    assert!(tables(&pool.store().join("week=2024-01-08")) == undisturbed.tables(), "the tables differ");
    let log = &joined.stderr;
    assert!(log.contains("the run goes on with 1 of 3 processes"), "{log}");
    assert!(log.contains("the run goes on with 3 of 3 processes"), "{log}");
}

#[test]
fn the_check_passes_hosts_that_are_fit_and_names_one_that_is_unreachable() {
    let Some(pool) = PoolOfHosts::new("check") else { return };
    let fit = pool.check(&[&pool.job, "--store", pool.store().to_str().unwrap()]);
    assert_eq!(fit.code, Some(0), "{}{}", fit.stdout, fit.stderr);
    assert!(fit.stdout.contains("node-3") && fit.stdout.contains("All is well"), "{}", fit.stdout);
    // Whole days: 365 within the second that made the keys, 364 after it.
    assert!(["365 days", "364 days"].iter().any(|days| fit.stdout.contains(days)), "{}", fit.stdout);

    pool.hosts.link(1, "down");
    let unreachable = pool.check(&[]);
    pool.hosts.link(1, "up");
    assert_eq!(unreachable.code, Some(1), "{}", unreachable.stdout);
    assert!(unreachable.stdout.contains("node-1: ssh cannot reach it"), "{}", unreachable.stdout);
}

#[test]
fn a_pool_without_keys_is_refused() {
    let Some(pool) = PoolOfHosts::new("bare") else { return };
    let without_tls = std::fs::read_to_string(&pool.config).unwrap().replace("keys = ", "# keys = ");
    let config = pool.hosts.path("bare.toml");
    std::fs::write(&config, without_tls).unwrap();
    let refused = ran(&mut pool.command(config.to_str().unwrap(), &pool.store()));
    assert_eq!(refused.code, Some(1), "{}", refused.stderr);
    assert!(refused.stderr.contains("keys") || refused.stderr.contains("loopback"), "{}", refused.stderr);
    let checked = ran(&mut pool.hosts.nigh(&["pool", "check", "--config", config.to_str().unwrap()]));
    assert_eq!(checked.code, Some(1), "{}", checked.stdout);
    for node in 1..=3 {
        let wanted = format!("node-{node}: 10.77.0.1{node}:");
        let line = checked.stdout.lines().find(|line| line.contains(&wanted));
        assert!(line.is_some_and(|line| line.contains("is not on loopback")), "{}", checked.stdout);
    }
}

#[test]
fn three_hosts_make_a_store_in_a_bucket() {
    let Some(hosts) = NetworkHosts::new("bucket") else { return };
    let Some(server) = BucketServer::start_within(&hosts.on_hub(), "pool over ssh: bucket") else { return };
    let keys = hosts.path("keys");
    run_well(&["pool", "keys", "--processes", "3", "--out", keys.to_str().unwrap()]);
    let (here, mirror) = (format!("binary = {:?}", env!("CARGO_BIN_EXE_nigh")), hosts.path("mirror"));
    let config = hosts.config("pool.toml", &here);
    let job = waves(hosts.folder.path());
    let store = ["--config", &config, job.to_str().unwrap(), "--store", "s3://bucket/store"];
    let nigh = |command: &[&str], mirror: &[&str]| {
        ran(hosts.nigh(&[command, &store, mirror].concat()).envs(server.environment()))
    };

    // The other hosts do not speak to the bucket: they work in a folder, which must be given.
    let refused = nigh(&["run"], &[]);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("`mirror` in the config, or by --mirror"), "{}", refused.stderr);

    let mirror = ["--mirror", mirror.to_str().unwrap()];
    let checked = nigh(&["pool", "check"], &mirror);
    assert_eq!(checked.code, Some(0), "{}{}", checked.stdout, checked.stderr);
    assert!(checked.stdout.contains("All is well"), "{}", checked.stdout);
    let made = nigh(&["run"], &mirror);
    assert_eq!(made.code, Some(0), "{}", made.stderr);

    // What is in the bucket has the bytes that one process makes in a folder.
    let elsewhere = hosts.path("elsewhere");
    let fetch = ["vacuum", "--store", "s3://bucket/store", "--keep", "9", "--mirror", elsewhere.to_str().unwrap()];
    let fetched = ran(hosts.nigh(&fetch).envs(server.environment()));
    assert_eq!(fetched.code, Some(0), "{}", fetched.stderr);
    let alone = Made::with_job(&job, &[]);
    assert!(tables(&elsewhere.join("week=2024-01-08")) == alone.tables());
}
