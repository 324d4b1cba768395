//! A PostgreSQL of the comparison's own: made by `initdb` in a directory of its own, gone at the end.
//!
//! PostgreSQL does not run as root: where the harness does, the cluster belongs to the user `postgres`, whom Debian's
//! packages make. The settings are what someone sets who knows the machine: memory, a long way between checkpoints.

use crate::server::{Scratch, disk_bytes};
use std::fs::{self, File};
use std::io;
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const START_MAX: Duration = Duration::from_secs(30);
const STOP_MAX: Duration = Duration::from_secs(20);

/// What is set beyond the defaults, apart from durability.
pub(super) const SETTINGS: &str = "shared_buffers=1GB work_mem=64MB maintenance_work_mem=512MB effective_cache_size=4GB \
     max_wal_size=8GB checkpoint_timeout=30min random_page_cost=1.1 jit=off max_connections=400";

/// A running cluster.
#[derive(Debug)]
pub(super) struct Cluster {
    child: Child,
    scratch: Scratch,
    port: u16,
}

/// Where PostgreSQL's programs are: on the path, or where Debian puts them.
fn programs() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places: Vec<PathBuf> = fs::read_dir("/usr/lib/postgresql")
        .map_or_else(|_| Vec::new(), |versions| versions.filter_map(|v| Some(v.ok()?.path().join("bin"))).collect());
    // The newest first.
    places.sort_by_key(|place| std::cmp::Reverse(place.clone()));
    places.extend(std::env::split_paths(&path));
    places.into_iter().find(|dir| dir.join("initdb").is_file() && dir.join("postgres").is_file())
}

fn id(arguments: &[&str]) -> Option<u32> {
    let output = Command::new("id").args(arguments).output().ok()?;
    String::from_utf8_lossy(&output.stdout).trim().parse().ok()
}

/// As whom PostgreSQL runs, where not as us: user and group.
fn another_user() -> Option<(u32, u32)> {
    (id(&["-u"]) == Some(0)).then(|| Some((id(&["-u", "postgres"])?, id(&["-g", "postgres"])?))).flatten()
}

impl Cluster {
    /// Makes and starts one; nothing where PostgreSQL is not on this machine.
    ///
    /// # Errors
    /// Where it is and does not start, with what it said.
    pub(super) fn start(synchronous: bool) -> io::Result<Option<Self>> {
        let Some(programs) = programs() else { return Ok(None) };
        let scratch = Scratch::new("postgresql")?;
        let user = another_user();
        if let Some((uid, gid)) = user {
            std::os::unix::fs::chown(scratch.path(), Some(uid), Some(gid))?;
        }
        let command = |program: &str| {
            let mut command = Command::new(programs.join(program));
            command.current_dir(scratch.path()).stdin(Stdio::null()).stdout(Stdio::null());
            if let Some((uid, gid)) = user {
                command.uid(uid).gid(gid);
            }
            command
        };
        let data = scratch.path().join("data");
        let made = command("initdb")
            .args(["-U", "postgres", "-A", "trust", "--no-locale", "-E", "UTF8", "--no-sync", "-D"])
            .arg(&data)
            .stderr(Stdio::piped())
            .output()?;
        if !made.status.success() {
            return Err(io::Error::other(format!("initdb: {}", String::from_utf8_lossy(&made.stderr).trim())));
        }
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let mut server = command("postgres");
        server.arg("-D").arg(&data).args(["-p", &port.to_string(), "-c", "listen_addresses=127.0.0.1"]);
        server.args(["-c", "unix_socket_directories="]);
        for setting in SETTINGS.split_whitespace() {
            server.args(["-c", setting]);
        }
        server.args(["-c", if synchronous { "synchronous_commit=on" } else { "synchronous_commit=off" }]);
        let log = scratch.path().join("log");
        let child = server.stderr(File::create(&log)?).spawn()?;
        let mut cluster = Self { child, scratch, port };
        cluster.wait(&log)?;
        Ok(Some(cluster))
    }

    fn wait(&mut self, log: &Path) -> io::Result<()> {
        let from = Instant::now();
        loop {
            let ended = self.child.try_wait()?.is_some();
            let said = fs::read_to_string(log).unwrap_or_default();
            if said.contains("ready to accept connections") && TcpStream::connect(("127.0.0.1", self.port)).is_ok() {
                return Ok(());
            }
            if ended || from.elapsed() > START_MAX {
                return Err(io::Error::other(format!("PostgreSQL did not start: {said}")));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// How to reach it.
    pub(super) fn address(&self) -> String {
        format!("host=127.0.0.1 port={} user=postgres dbname=postgres", self.port)
    }

    /// Bytes of all its files, its log of writes included.
    pub(super) fn disk(&self) -> Option<u64> {
        disk_bytes(&self.scratch.path().join("data")).ok().map(|(_, taken)| taken)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // A fast shutdown: the children of the server end with it.
        let _ = Command::new("kill").args(["-INT", &self.child.id().to_string()]).status();
        let from = Instant::now();
        while from.elapsed() < STOP_MAX {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
