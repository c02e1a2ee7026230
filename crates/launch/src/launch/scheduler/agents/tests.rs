//! Agents of other tasks that connect, are refused, and stand in for each other.

use super::*;
use crate::launch::wire::keys;

/// An event: kind, text, epoch and process.
type ReceivedEvent = (String, String, u64, Option<usize>);

/// Task 0 of a run, and the events of its listener.
struct ListeningTask {
    folder: tempfile::TempDir,
    task: SchedulerTask,
    agents: Agents,
    port: u16,
    events: EventSink,
    received: Receiver<ReceivedEvent>,
}

impl ListeningTask {
    /// Task 0 of `count`, with more lines in `[tasks]`.
    fn new(count: usize, more: &str) -> ListeningTask {
        ListeningTask::of_pool(count, "", more)
    }

    /// The same, with more lines before that table.
    fn of_pool(count: usize, before: &str, more: &str) -> ListeningTask {
        let folder = tempfile::tempdir().unwrap();
        keys::make(folder.path(), count, 1).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let text = format!(
            "workers = 1\nkeys = {:?}\n{before}\n[tasks]\nscheduler = \"slurm\"\ncontrol = \"{port}-{}\"\n{more}",
            folder.path(),
            port.saturating_add(50)
        );
        let config: Config = toml::from_str(&text).unwrap();
        let task = SchedulerTask { me: 0, count, supervisor: "127.0.0.1".into(), job: 7, cpus: None, machines: 1 };
        let (sender, received) = channel::<ReceivedEvent>();
        let sender = Mutex::new(sender);
        let events: EventSink = Arc::new(move |event| {
            let ProcessEvent { kind, text, epoch, process } = event;
            let _ = lock(&sender).send((kind.to_owned(), text.to_owned(), epoch, process));
        });
        let agents = Agents::open(&task, config.tasks.as_ref().unwrap(), &config, &events).unwrap();
        let port: u16 = agents.0.address.rsplit(' ').next().unwrap().parse().unwrap();
        ListeningTask { folder, task, agents, port, events, received }
    }

    /// Connects as another task.
    fn connect(&self, number: usize) -> Control {
        self.connect_at(IpAddr::V4(Ipv4Addr::LOCALHOST), number)
    }

    fn connect_at(&self, address: IpAddr, number: usize) -> Control {
        let credentials = Identity::Keys(self.folder.path().to_owned()).credentials(number).unwrap();
        let participant = Participant::new(number, roster(&self.task), credentials, Deadlines::default());
        let socket = TcpStream::connect((address, self.port)).unwrap();
        let connection = participant.introduce(&socket, 0).ok().flatten().expect("it is accepted");
        Control::new(socket, connection, Duration::from_secs(20)).unwrap()
    }
}

#[test]
fn refused_and_lost_connections_are_events_that_name_the_task() {
    let first = ListeningTask::new(2, "listen = \"127.0.0.1\"");
    let next = || first.received.recv_timeout(Duration::from_secs(60)).unwrap();

    TcpStream::connect(("127.0.0.1", first.port)).unwrap().write_all(&[0xff; 1000]).unwrap();
    let (kind, text, epoch, process) = next();
    assert_eq!((kind.as_str(), epoch, process), ("refused", 0, Some(0)));
    assert!(text.starts_with("task 0 refused a connection from 127.0.0.1") && text.contains("not TLS"), "{text}");

    // A task of the run that does not keep to the protocol; in another epoch.
    first.agents.0.announcer.epoch.store(3, Ordering::Relaxed);
    first.connect(1).send(&ControlFrame::Output(vec![7; MAX_FRAME])).unwrap();
    let (kind, text, epoch, process) = next();
    assert_eq!((kind.as_str(), epoch, process), ("lost", 3, Some(1)));
    assert!(text.contains("task 1 at 127.0.0.1") && text.contains("`output` (65536 bytes) instead"), "{text}");
}

#[test]
fn tasks_connect_by_ipv4_and_ipv6_and_their_addresses_are_those_by_which_they_did() {
    let has_ipv6 = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_ok();
    let first = ListeningTask::new(2, "");
    for address in [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)] {
        if address.is_ipv4() || has_ipv6 {
            first.connect_at(address, 1).send(&ControlFrame::Name("node-1".into())).unwrap();
            let begun = Instant::now();
            let used = || lock(&first.agents.0.state).agents[1].as_ref().map(|agent| agent.addresses);
            while used() != Some((address, address)) {
                assert!(begun.elapsed() < Duration::from_secs(60), "{address}: {:?}", used());
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }
}

#[test]
fn a_task_that_is_left_out_and_back_stands_in_for_one_that_does_not_come() {
    let (first, long) = (ListeningTask::new(3, "listen = \"127.0.0.1\"\nwait = \"60s\""), Duration::from_secs(60));
    let used = |left_out: (usize, Option<Instant>), grace: Duration| {
        let addresses = first.agents.wait_for(&[0, 1], &[left_out], (2, grace), 0, &first.events).unwrap();
        addresses.iter().map(Option::is_some).collect::<Vec<bool>>()
    };
    let second = first.connect(2);
    second.send(&ControlFrame::Name("node-2".into())).unwrap();
    let from = Instant::now() + Duration::from_millis(300);
    assert_eq!(used((2, Some(from)), Duration::from_millis(100)), [true, false, true]);
    assert!(Instant::now() >= from, "it was used before its time");
    // Where all come, it is taken in after a wave.
    let other = first.connect(1);
    other.send(&ControlFrame::Name("node-1".into())).unwrap();
    assert_eq!(used((2, None), long), [true, true, false]);
}

#[test]
fn the_end_of_a_run_waits_for_tasks_that_may_come_and_says_so() {
    let begun = Instant::now();
    let tasks = "listen = \"127.0.0.1\"\nwait = \"300s\"";
    // Nothing was to do, and the run may do without the others.
    ListeningTask::of_pool(3, "min-processes = 1\ngrace = \"100ms\"", tasks).agents.finish(0);
    // A task that was told to end has ended.
    let first = ListeningTask::new(2, tasks);
    let leaving = first.connect(1);
    for frame in [ControlFrame::Name("node-1".into()), ControlFrame::Leaving] {
        leaving.send(&frame).unwrap();
    }
    let state = || lock(&first.agents.0.state);
    let wait_until = |reached: &dyn Fn(&AgentsState) -> bool| {
        while !reached(&state()) {
            assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", state().lost);
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    wait_until(&|state| state.leaving[1]);
    leaving.cut();
    wait_until(&|state| state.agents[1].is_none());
    first.agents.finish(0);
    // Another one may still come.
    let first = ListeningTask::new(2, tasks);
    std::thread::scope(|scope| {
        scope.spawn(|| first.agents.finish(0));
        let (kind, text, ..) = first.received.recv_timeout(Duration::from_secs(60)).unwrap();
        assert_eq!(kind, "waiting");
        assert!(text.starts_with("the run has ended, and waits for task 1 of 2 tasks, at 127.0.0.1 port "), "{text}");
        let late = first.connect(1);
        late.send(&ControlFrame::Name("node-1".into())).unwrap();
        while late.receive().unwrap() != ControlFrame::Finish(0) {}
        late.cut();
    });
    assert!(begun.elapsed() < Duration::from_secs(120), "{:?}", begun.elapsed());
}
