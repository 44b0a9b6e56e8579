//! What the service manager is told (sd_notify(3)); nothing where there is none.

use std::time::Duration;

use sd_notify::NotifyState;

use crate::worker::{Command, Handle};

/// Tells the service manager; a failure is logged, since the agent works all the same.
pub fn tell(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!(%error, "the service manager could not be notified");
    }
}

/// A reload begins: the state must carry its instant (sd_notify(3), `MONOTONIC_USEC`).
pub fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => tell(&[NotifyState::Reloading, now]),
        Err(error) => tracing::warn!(%error, "the service manager was not told of the reload"),
    }
}

/// What the service manager's watchdog waits for at most; `None` without one.
#[must_use]
pub fn watchdog() -> Option<Duration> {
    sd_notify::watchdog_enabled()
}

/// Calls `ping` three times within each `period`, but only while the worker answers: an agent that
/// does not consume its ring is to be restarted.
pub async fn guard(worker: Handle, period: Duration, mut ping: impl FnMut()) {
    let step = period / 3;
    let mut ticks = tokio::time::interval(step);
    loop {
        ticks.tick().await;
        match tokio::time::timeout(step, worker.ask(Command::Ping)).await {
            Ok(Some(())) => ping(),
            Ok(None) => return,
            Err(_) => tracing::error!("the worker does not answer: the watchdog is not fed"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn the_watchdog_is_fed_only_while_the_worker_answers() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        let (handle, orders) = channel();
        let handle = Handle::over(handle);
        let pings = Rc::new(Cell::new(0));
        let count = Rc::clone(&pings);
        runtime.block_on(async {
            let guarded =
                guard(handle, Duration::from_secs(30), move || count.set(count.get() + 1));
            let answering = async {
                for _ in 0..3 {
                    loop {
                        if let Ok(Command::Ping(reply)) = orders.try_recv() {
                            reply.send(()).unwrap();
                            break;
                        }
                        tokio::time::sleep(Duration::from_millis(1)).await;
                    }
                }
                // From here on it is stuck: it holds its orders and answers none.
                tokio::time::sleep(Duration::from_secs(300)).await;
            };
            tokio::select! { () = guarded => {}, () = answering => {} }
        });
        assert_eq!(pings.get(), 3);
    }
}
