//! A real object store on this machine: SeaweedFS, which keeps what it has on the disk and heeds
//! conditional puts.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::program::skipped;
use crate::skips::Need;

/// A server with a bucket, until this is dropped.
pub struct BucketServer {
    /// What runs a command where the server is heard.
    within: Vec<String>,
    child: Child,
    folder: tempfile::TempDir,
    /// Those that it was given; the seventh is that of S3.
    ports: Vec<u16>,
}

impl Drop for BucketServer {
    fn drop(&mut self) {
        // `timeout` hands the signal on to the server, which would take half a minute to end, and
        // kills it.
        let _ = Command::new("kill").arg(self.child.id().to_string()).status();
        let _ = self.child.wait();
        for port in &self.ports {
            for name in ["master-grpc", "volume-grpc", "filer-grpc", "s3", "s3-grpc"] {
                // It leaves its sockets behind, always in this folder.
                let _ = std::fs::remove_file(format!("/tmp/seaweedfs-{name}-{port}.sock"));
            }
        }
    }
}

/// Where pip puts SeaweedFS, or where the path has it.
fn weed() -> Option<PathBuf> {
    let scripts =
        Command::new("python3").args(["-c", "import sysconfig; print(sysconfig.get_path('scripts'))"]).output();
    let scripts = scripts.ok().and_then(|output| String::from_utf8(output.stdout).ok());
    let paths = std::env::var_os("PATH").map(|paths| std::env::split_paths(&paths).collect::<Vec<_>>());
    let folders = paths.into_iter().flatten().chain(scripts.map(|scripts| PathBuf::from(scripts.trim())));
    folders.map(|folder| folder.join("weed")).find(|program| program.is_file())
}

/// Starts the server on ports that are free now.
fn spawn(within: &[String], weed: &Path, folder: &Path) -> (Child, Vec<u16>) {
    // Held all at once, so that they differ.
    let held: Vec<TcpListener> = (0..8).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    let ports: Vec<u16> = held.iter().map(|listener| listener.local_addr().unwrap().port()).collect();
    drop(held);
    let names = ["master", "volume", "filer", "s3"];
    let flags = names
        .iter()
        .zip(ports.chunks(2))
        .flat_map(|(name, ports)| [format!("-{name}.port={}", ports[0]), format!("-{name}.port.grpc={}", ports[1])]);
    // It ends by itself, should this process be killed.
    let child = Command::new(&within[0])
        .args(&within[1..])
        .args(["timeout", "--kill-after=0.2", "900"])
        .arg(weed)
        .args(["server", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-filer", "-s3", "-volume.max=20"])
        .arg(format!("-dir={}", folder.join("data").display()))
        .arg(format!("-s3.config={}", folder.join("keys.json").display()))
        .args(["-master.volumeSizeLimitMB=64", "-s3.port.iceberg=0", "-s3.port.lance=0"])
        .args(flags)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(folder.join("log")).unwrap())
        .spawn()
        .unwrap();
    (child, ports)
}

impl BucketServer {
    /// Starts a server; `None`, with a word, where there is none to start.
    pub fn start(wanted_by: &str) -> Option<BucketServer> {
        BucketServer::start_within(&["env".to_owned()], wanted_by)
    }

    /// Starts a server by a command that runs commands elsewhere: it serves the loopback address
    /// there.
    pub fn start_within(within: &[String], wanted_by: &str) -> Option<BucketServer> {
        let Some(weed) = weed() else {
            skipped(Need::SeaweedFs, wanted_by);
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        let keys = folder.path().join("keys.json");
        let credentials = r#"[{"accessKey": "test", "secretKey": "secret"}]"#;
        let user = format!(r#"{{"name": "test", "credentials": {credentials}, "actions": ["Admin"]}}"#);
        let text = format!(r#"{{"identities": [{user}]}}"#);
        std::fs::write(&keys, text).unwrap();
        std::fs::create_dir(folder.path().join("data")).unwrap();
        let log = folder.path().join("log");
        let (child, ports) = spawn(within, &weed, folder.path());
        let mut server = BucketServer { within: within.to_vec(), child, folder, ports };
        let begun = Instant::now();
        while !server.ready() {
            // A port that was free may be taken before the server has it: then the server ends.
            let has_ended = server.child.try_wait().unwrap().is_some();
            if begun.elapsed() > Duration::from_secs(90) {
                let log = std::fs::read_to_string(log).unwrap();
                panic!(
                    "the server did not begin to serve:\n{}",
                    log.lines().rev().take(30).collect::<Vec<_>>().join("\n")
                );
            }
            if has_ended {
                (server.child, server.ports) = spawn(within, &weed, server.folder.path());
            }
            std::thread::sleep(Duration::from_millis(200));
        }
        Some(server)
    }

    fn port(&self) -> u16 {
        self.ports[6]
    }

    fn ready(&self) -> bool {
        // It says no where the bucket is there already.
        self.curl(&["-X", "PUT"], "");
        self.curl(&["-X", "PUT", "--data-binary", "x"], "/probe").status.success()
    }

    /// A request to the bucket, as one of its users without nigh makes it.
    fn curl(&self, flags: &[&str], path: &str) -> Output {
        let url = format!("http://127.0.0.1:{}/bucket{path}", self.port());
        let signed = ["--aws-sigv4", "aws:amz:us-east-1:s3", "--user", "test:secret"];
        // Not every curl signs what it sends.
        let unsigned = ["-H", "x-amz-content-sha256: UNSIGNED-PAYLOAD"];
        let signed = [&["--silent", "--fail", "--max-time", "20"][..], &signed[..], &unsigned[..]].concat();
        let mut command = Command::new(&self.within[0]);
        command.args(&self.within[1..]).arg("curl").args(signed).args(flags).arg(url);
        command.stdin(Stdio::null()).output().unwrap()
    }

    pub fn get(&self, path: &str) -> Vec<u8> {
        let output = self.curl(&[], path);
        assert!(output.status.success(), "{path}: {:?}", output.status);
        output.stdout
    }

    pub fn put(&self, path: &str, bytes: &[u8]) {
        let file = self.folder.path().join("put");
        std::fs::write(&file, bytes).unwrap();
        let output = self.curl(&["-X", "PUT", "--data-binary", &format!("@{}", file.display())], path);
        assert!(output.status.success(), "{path}: {:?}", output.status);
    }

    /// The names of all objects below a prefix, without it.
    pub fn keys(&self, prefix: &str) -> Vec<String> {
        let text = String::from_utf8(
            self.get(&format!("?list-type=2&max-keys=1000&prefix={}%2F", prefix.replace('/', "%2F"))),
        )
        .unwrap();
        assert!(text.contains("<IsTruncated>false"), "{text}");
        let keys = text.split("<Key>").skip(1).map(|rest| rest.split("</Key>").next().unwrap());
        keys.map(|key| key.strip_prefix(&format!("{prefix}/")).unwrap().to_owned()).collect()
    }

    /// The settings by which nigh finds the server.
    pub fn environment(&self) -> [(&'static str, String); 5] {
        [
            ("AWS_ENDPOINT_URL", format!("http://127.0.0.1:{}", self.port())),
            ("AWS_ALLOW_HTTP", "true".into()),
            ("AWS_REGION", "us-east-1".into()),
            ("AWS_ACCESS_KEY_ID", "test".into()),
            ("AWS_SECRET_ACCESS_KEY", "secret".into()),
        ]
    }
}
