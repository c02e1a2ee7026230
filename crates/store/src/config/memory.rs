//! The memory of this machine, for the default of `memory`: on Linux also as limited by a control
//! group.

#[cfg(target_os = "linux")]
use std::path::{Path, PathBuf};

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

/// The smallest memory limit of this process' control group and its parents, in bytes.
#[cfg(target_os = "linux")]
fn group_memory() -> Option<u64> {
    least_limit(&std::fs::read_to_string("/proc/self/cgroup").ok()?, Path::new("/sys/fs/cgroup"))
}

/// The smallest memory limit of these groups and their parents, as `/proc/self/cgroup` lists them.
/// The tree of groups is at `root`; with version 1, that of memory is a folder of it. A container
/// may see its own group as the whole tree.
#[cfg(target_os = "linux")]
fn least_limit(groups: &str, root: &Path) -> Option<u64> {
    let of_line = |line: &str| -> Option<Vec<PathBuf>> {
        let (controllers, group) = line.split_once(':')?.1.split_once(":/")?;
        let (tree, file) = if controllers.is_empty() {
            (root.to_owned(), "memory.max")
        } else if controllers.split(',').any(|name| name == "memory") {
            (root.join("memory"), "memory.limit_in_bytes")
        } else {
            return None;
        };
        Some(Path::new(group).ancestors().map(|group| tree.join(group).join(file)).collect())
    };
    let limit = |path: PathBuf| std::fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    groups.lines().filter_map(of_line).flatten().filter_map(limit).min()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_limit_counts_in_both_versions_of_groups() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, limit: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, format!("{limit}\n")).unwrap();
        };
        write("a/memory.max", "3000");
        write("a/b/memory.max", "max");
        write("memory/slurm/memory.limit_in_bytes", "2000");
        write("memory/slurm/job/memory.limit_in_bytes", "9223372036854771712");
        write("memory/memory.limit_in_bytes", "9223372036854771712");
        let limit = |groups: &str| least_limit(groups, folder.path());
        assert_eq!(limit("0::/a/b\n"), Some(3000));
        assert_eq!(limit("0::/c\n"), None);
        assert_eq!(limit("11:cpuset:/slurm\n4:memory:/slurm/job\n0::/\n"), Some(2000));
        assert_eq!(limit("4:hugetlb,memory:/docker/1\n"), Some(9_223_372_036_854_771_712));
        assert_eq!(limit("4:memory:/slurm\n0::/a\n"), Some(2000));
        assert_eq!(limit("1:name=systemd:/a\n"), None);
    }
}
