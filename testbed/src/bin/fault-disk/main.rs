//! A SCSI disk with chosen faults, served from user space to the kernel it runs on.
//!
//! The kernel's target core hands each command that reaches the disk to this program (TCMU), and
//! its loopback transport shows the target to the same machine as an ordinary `/dev/sdX`. So a
//! test sees a real SCSI disk, driven by the real SCSI layer, whose answers are decided here.
//! Needs root, and the modules target_core_user and tcm_loop.

mod ata;
mod disk;
mod options;
mod ring;
mod sense;
mod target;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use clap::Parser;
use disk::{Answer, Disk};
use options::Options;
use ring::{Event, Ring};
use target::Target;

fn main() -> anyhow::Result<()> {
    run(&Options::parse())
}

fn run(options: &Options) -> anyhow::Result<()> {
    let armed = Arc::new(AtomicBool::new(false));
    let mut disk = Disk::open(options, Arc::clone(&armed))?;
    let target = Target::new(&options.name, disk.bytes())?;
    let mut ring = Ring::open(&target.uio()?)?;

    // Attaching blocks until the kernel has asked the new disk who it is, which the loop below
    // answers; so attach on another thread.
    thread::spawn(move || match target.attach() {
        Ok(device) => {
            armed.store(true, Ordering::Release);
            println!("ready {device}");
        }
        Err(error) => {
            eprintln!("fault-disk: cannot attach: {error}");
            std::process::exit(1);
        }
    });
    serve(&mut ring, &mut disk)
}

/// Answers commands for ever.
fn serve(ring: &mut Ring, disk: &mut Disk) -> anyhow::Result<()> {
    loop {
        let mut answered = false;
        while let Some(event) = ring.next_event() {
            match event {
                Event::Command(command) => match disk.serve(&command.cdb, &mut command.data(ring)) {
                    Answer::Never => {}
                    Answer::Done { status, sense, length } => {
                        ring.complete(command.id, status, &sense, length);
                        answered = true;
                    }
                },
                // The kernel gave up on these. A disk that hangs lets go of them now.
                Event::Aborted(ids) => {
                    for id in ids {
                        ring.complete(id, disk::TASK_ABORTED, &[], 0);
                    }
                    answered = true;
                }
            }
        }
        if answered {
            ring.notify()?;
        }
        ring.wait()?;
    }
}
