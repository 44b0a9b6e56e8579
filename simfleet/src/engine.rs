//! Runs one [`EngineModel`] against the real clock: sleeps to its deadlines, hands out what is due.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use protocol::Nanos;
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::clock::{Alarm, monotonic_now};
use crate::model::{Arrival, EngineModel, ModelParams, ModelStats, Output, OutputKind, RequestId};

/// A running engine; clones share it.
#[derive(Clone)]
pub(crate) struct Engine {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    changed: Notify,
}

struct State {
    model: EngineModel,
    listeners: HashMap<RequestId, UnboundedSender<Output>>,
}

/// One request's place in the engine; leaving it early cancels the request.
pub(crate) struct Ticket {
    engine: Engine,
    id: RequestId,
    /// When the engine took the request.
    pub(crate) arrived: Nanos,
    outputs: UnboundedReceiver<Output>,
    done: bool,
}

impl Engine {
    /// An idle engine. [`Engine::drive`] must run for anything to become due.
    pub(crate) fn new(params: ModelParams) -> Self {
        let state = State { model: EngineModel::new(params), listeners: HashMap::new() };
        Self { shared: Arc::new(Shared { state: Mutex::new(state), changed: Notify::new() }) }
    }

    /// Hands a request to the engine.
    pub(crate) fn submit(&self, arrival: Arrival) -> io::Result<Ticket> {
        let (sender, outputs) = unbounded_channel();
        let mut due = Vec::new();
        let mut state = self.state();
        let arrived = monotonic_now()?;
        let id = state.model.arrive(arrived, arrival, &mut due);
        state.listeners.insert(id, sender);
        state.deliver(&due);
        drop(state);
        self.shared.changed.notify_one();
        Ok(Ticket { engine: self.clone(), id, arrived, outputs, done: false })
    }

    /// Totals and present load.
    pub(crate) fn stats(&self) -> ModelStats {
        self.state().model.stats()
    }

    /// Sleeps from deadline to deadline for ever.
    pub(crate) async fn drive(self) -> io::Result<()> {
        let alarm = Alarm::new()?;
        loop {
            let next = self.state().model.next_deadline();
            let changed = self.shared.changed.notified();
            match next {
                None => changed.await,
                Some(at) => tokio::select! {
                    fired = alarm.wait_until(at) => fired?,
                    () = changed => continue,
                },
            }
            let mut due = Vec::new();
            let mut state = self.state();
            state.model.advance(monotonic_now()?, &mut due);
            state.deliver(&due);
        }
    }

    fn cancel(&self, id: RequestId) {
        let mut due = Vec::new();
        let mut state = self.state();
        state.listeners.remove(&id);
        if let Ok(now) = monotonic_now() {
            state.model.cancel(now, id, &mut due);
        }
        state.deliver(&due);
        drop(state);
        self.shared.changed.notify_one();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // The model holds no invariant that a panic elsewhere could break half-way.
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn deliver(&mut self, due: &[Output]) {
        for output in due {
            if let Some(listener) = self.listeners.get(&output.id) {
                // A receiver that has gone cancels its request by itself.
                let _ = listener.send(*output);
            }
            if matches!(output.kind, OutputKind::Token { last: true, .. }) {
                self.listeners.remove(&output.id);
            }
        }
    }
}

impl Ticket {
    /// The next thing that became due; `None` after the last token.
    pub(crate) async fn next(&mut self) -> Option<Output> {
        let output = self.outputs.recv().await;
        let last = output.is_none_or(|o| matches!(o.kind, OutputKind::Token { last: true, .. }));
        self.done |= last;
        output
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if !self.done {
            self.engine.cancel(self.id);
        }
    }
}
