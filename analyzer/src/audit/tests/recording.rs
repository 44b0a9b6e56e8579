//! What a recording lacks, and what that forbids to say.

use super::*;

fn sticky() -> Scene {
    Scene::new(3, &traffic(400, 12, |_, document| document % 3))
}

fn vip(scene: &mut Scene, requests: usize, outcome: &str) {
    let address = "10.0.0.1:80".to_owned();
    let endpoint = EndpointPart { address: address.clone(), role: Role::Vip };
    scene.agent.part.endpoints.push(endpoint);
    for at in 0..requests {
        let asked = Asked { document: 0, backend: 0, connection: 100_000 };
        let request = request(at, &asked);
        let outcome = outcome.to_owned();
        let row = RequestRow {
            endpoint: address.clone(),
            leg: Leg::Client,
            role: Role::Vip,
            outcome,
            ..request
        };
        scene.agent.requests.push(row);
        scene.account().observations += 1;
    }
}

#[test]
fn a_lossy_window_is_unknown_whatever_the_figures_say() {
    for cause in ["ring_full", "sequence_gap", "preempted", "memory_limit", "some_new_cause"] {
        let mut scene = sticky();
        scene.account().reasons = vec![cause.to_owned()];
        scene.account().complete = false;
        let report = scene.report();
        assert_eq!(codes(&report.reasons), ["loss"]);
        assert!(report.reasons[0].detail.contains(cause));
        let role = &report.roles[0];
        assert_eq!((role.affinity, role.evenness), (Affinity::Unknown, Evenness::Unknown));
        assert_eq!((role.reading.as_deref(), role.prefixes[0].repeats), (None, 388));
        assert!(!report.is_judged());
    }
}

#[test]
fn causes_that_lose_no_request_are_notes() {
    let mut scene = sticky();
    scene.account().reasons = vec!["adopted_connection".to_owned(), "open_requests".to_owned()];
    scene.account().open_requests = 3;
    scene.state = State::Interrupted;
    let report = scene.report();
    assert!(report.is_judged(), "{:?}", report.reasons);
    assert_eq!(report.notes.len(), 3);
    scene.account().open_requests = 50;
    assert_eq!(codes(&scene.report().reasons), ["open_requests"]);
}

#[test]
fn a_killed_recorder_leaves_figures_and_no_judgement() {
    let mut scene = sticky();
    scene.state = State::Recording;
    scene.agent.part.account = None;
    let report = scene.report();
    assert_eq!(codes(&report.reasons), ["no_account"]);
    assert_eq!((report.roles[0].affinity, report.roles[0].requests), (Affinity::Unknown, 400));
    scene.state = State::Complete;
    assert_eq!(codes(&scene.report().reasons), ["no_account"], "an agent that died");
    scene.agent.problems.insert("agent_unreachable".to_owned());
    assert_eq!(codes(&scene.report().reasons), ["no_account", "loss"]);
}

#[test]
fn opaque_connections_hide_requests() {
    let mut scene = sticky();
    scene.agent.requests[0].opaque = Some("tls".to_owned());
    let role = scene.role();
    assert_eq!(codes(&role.reasons), ["opaque"]);
    assert_eq!(role.affinity, Affinity::Unknown);
}

#[test]
fn one_backend_is_no_choice_and_none_is_nothing() {
    let role = Scene::new(1, &traffic(400, 12, |_, _| 0)).role();
    assert_eq!(codes(&role.reasons), ["one_backend"]);
    let report = Scene::new(0, &[]).report();
    assert_eq!((codes(&report.reasons), report.roles.len()), (vec!["one_backend"], 0));
    assert!(!report.is_judged());
}

#[test]
fn a_silent_backend_is_believed_only_when_all_requests_are_accounted_for() {
    let quiet = || Scene::new(4, &traffic(400, 12, |_, document| document % 3));
    assert_eq!(codes(&quiet().role().reasons), ["backend_not_observed"]);
    let mut scene = quiet();
    vip(&mut scene, 400, "ok");
    assert!(scene.role().reasons.is_empty(), "the others got all");
    let mut scene = quiet();
    vip(&mut scene, 500, "ok");
    assert_eq!(codes(&scene.role().reasons), ["requests_unaccounted"]);
    let mut scene = quiet();
    vip(&mut scene, 400, "ok");
    vip(&mut scene, 100, "http_status");
    assert!(scene.role().reasons.is_empty(), "a gateway's own errors go to no backend");
}

#[test]
fn requests_without_a_prompt_are_not_routed_traffic() {
    let mut scene = sticky();
    for row in &mut scene.agent.prefixes[..100] {
        (row.prompt_end, row.prefixes) = (PromptEnd::Absent, [const { None }; 4]);
    }
    let role = scene.role();
    assert_eq!((role.requests, role.other_requests), (300, 100));
    assert_eq!(role.prefixes[0].hashed, 300);
}

#[test]
fn concentration_is_the_largest_mean_over_the_mean() {
    let mut scene = sticky();
    let load = |(number, requests_mean): (usize, f64)| BackendLoad {
        endpoint: backend(number),
        requests_mean,
        requests_peak: 9,
    };
    let row = |means: [f64; 3]| ConcentrationRow {
        schema: ConcentrationRow::SCHEMA.to_owned(),
        roles: vec![RoleLoad {
            role: Role::Backend,
            endpoints: means.into_iter().enumerate().map(load).collect(),
        }],
    };
    assert_eq!(scene.role().concentration, None, "not told");
    scene.agent.concentration = Some(row([3.0, 1.0, 2.0]));
    assert_eq!(scene.role().concentration, Some(1.5));
    scene.agent.concentration = Some(row([0.0; 3]));
    assert_eq!(scene.role().concentration, None, "idle");
}

/// A gateway's agent and a backend's see the same requests: they count once, in one order.
#[test]
fn agents_that_see_the_same_backend_count_it_once() {
    let scene = sticky();
    let mut recording = scene.recording();
    let mut other = scene.agent.clone();
    other.part.name = "backend 0".to_owned();
    other.part.endpoints.truncate(1);
    other.requests.retain(|row| row.endpoint == backend(0));
    // Its host's clock is its own.
    other
        .requests
        .iter_mut()
        .for_each(|row| row.request_first_ns = row.request_first_ns.map(|it| it + 77));
    other.part.account.as_mut().unwrap().opened_ns += 77;
    recording.agents.push(other.clone());
    let report = analyze(&recording);
    assert_eq!(report.roles[0].requests, 400);
    assert_eq!(report.roles[0].prefixes, scene.role().prefixes);
    // The gateway's agent sees nothing of that backend: the other one's rows complete it.
    recording.agents[0].requests.retain(|row| row.endpoint != backend(0));
    let report = analyze(&recording);
    assert_eq!(report.roles[0].requests, 400);
    assert_eq!(report.roles[0].prefixes, scene.role().prefixes);
    assert_eq!(report.roles[0].backends[0].agent, "backend 0");
}

#[test]
fn loopback_addresses_of_two_hosts_are_two_backends() {
    let mut recording = sticky().recording();
    for part in &mut recording.agents[0].part.endpoints {
        part.address = "127.0.0.1:8000".to_owned();
    }
    recording.agents[0].part.endpoints.truncate(1);
    let rows = &mut recording.agents[0].requests;
    rows.iter_mut().for_each(|row| row.endpoint = "127.0.0.1:8000".to_owned());
    let mut second = recording.agents[0].clone();
    second.part.name = "second".to_owned();
    recording.agents.push(second);
    let role = &analyze(&recording).roles[0];
    assert_eq!((role.backends.len(), role.requests), (2, 800));
}
