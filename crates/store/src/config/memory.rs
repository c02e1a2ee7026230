//! The memory of this machine, for the default of `memory`: on Linux also as limited by a control
//! group.

#[cfg(target_os = "linux")]
use std::path::Path;

/// The memory in bytes that this process may use: the machine's, or the limit of its control group
/// (that of a container or a batch job). 4 GiB on systems other than Linux.
pub(crate) fn machine_memory() -> u64 {
    #[cfg(target_os = "linux")]
    {
        let info = rustix::system::sysinfo();
        let machine = info.totalram as u64 * u64::from(info.mem_unit.max(1));
        group_memory().unwrap_or(u64::MAX).min(machine)
    }
    #[cfg(not(target_os = "linux"))]
    {
        4 << 30
    }
}

/// The smallest memory limit of this process' control group and its parents (cgroup version 2), in
/// bytes.
#[cfg(target_os = "linux")]
fn group_memory() -> Option<u64> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let group = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let limit = |path: &Path| {
        let path = Path::new("/sys/fs/cgroup").join(path).join("memory.max");
        std::fs::read_to_string(path).ok()?.trim().parse::<u64>().ok()
    };
    Path::new(group).ancestors().filter_map(limit).min()
}
