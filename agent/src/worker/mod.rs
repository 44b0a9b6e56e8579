//! The one thread that owns the source, the flows and the windows. The API asks it over a channel.

mod command;
mod engine;

use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::JoinHandle;
use std::time::Duration;

pub use command::{Change, Command, Ending, Gauges, Opened, Opening, Status, WindowLegs};
pub use engine::{Engine, EngineConfig, SocketWatch};

/// How long the source may wait for records before commands are served.
const POLL: Duration = Duration::from_millis(10);

/// The other end of a worker.
#[derive(Clone, Debug)]
pub struct Handle {
    commands: Sender<Command>,
}

impl Handle {
    /// A handle whose commands nobody serves but a test.
    #[cfg(test)]
    pub(crate) fn over(commands: Sender<Command>) -> Self {
        Self { commands }
    }

    /// Asks the worker; `None` when it has stopped.
    pub async fn ask<T>(
        &self,
        command: impl FnOnce(tokio::sync::oneshot::Sender<T>) -> Command,
    ) -> Option<T> {
        let (reply, answer) = tokio::sync::oneshot::channel();
        self.commands.send(command(reply)).ok()?;
        answer.await.ok()
    }
}

/// Starts the worker's thread.
///
/// # Errors
/// When the system refuses a thread.
pub fn start(mut engine: Engine) -> std::io::Result<(Handle, JoinHandle<()>)> {
    let (commands, orders) = channel();
    let thread = std::thread::Builder::new()
        .name("goodput-flows".to_owned())
        .spawn(move || run(&mut engine, &orders))?;
    Ok((Handle { commands }, thread))
}

fn run(engine: &mut Engine, orders: &Receiver<Command>) {
    loop {
        engine.poll(POLL);
        loop {
            match orders.try_recv() {
                Ok(Command::Stop(reply)) => {
                    engine.stop();
                    // Nobody may be waiting any more.
                    let _ = reply.send(());
                    return;
                }
                Ok(command) => engine.serve(command),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => {
                    engine.stop();
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
