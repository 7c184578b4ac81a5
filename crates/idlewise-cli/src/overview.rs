//! The help of the command itself: subcommands in groups, in the order in which people need them.

use std::fmt::Write;

use clap::Command;

use crate::exit;

/// A group's title, and its subcommands with what they do, in a line each.
type Group = (&'static str, &'static [(&'static str, &'static str)]);

const GROUPS: &[Group] = &[
    (
        "Disks",
        &[
            ("scrub", "Verify disks in their idle times. Read-only"),
            ("status", "Show how the scrubs of this machine stand"),
            ("run", "Run any command in the gaps between others' disk work"),
            ("owner-scrub", "Let md, btrfs or ZFS scrub with its own scrub, in the gaps"),
            ("repair", "Rewrite unreadable blocks from a mirror or through md"),
            ("probe", "Measure how long a disk takes. Read-only"),
            ("capture", "Record the requests of a disk as a trace"),
        ],
    ),
    (
        "Service",
        &[
            ("daemon", "Verify every disk of this machine in time"),
            ("check-config", "Show what the daemon would do with each disk"),
            ("pause", "Have the daemon verify nothing for a while"),
            ("resume", "Have the daemon go on"),
            ("start", "Have the daemon begin a pass now"),
            ("acknowledge", "Tell the daemon that bad blocks are known"),
            ("history", "Show the passes of a disk"),
            ("metrics", "Print the metrics of the daemon for Prometheus"),
            ("notify", "Send the messages of the daemon"),
        ],
    ),
    (
        "Traces",
        &[
            ("trace", "Look into traces; convert, cut, merge or make them"),
            ("idle", "Show idle-time statistics"),
            ("tune", "Choose request size and idle wait for a slowdown goal"),
            ("fleet", "Make a table of a whole fleet, a plan for each volume"),
            ("replay", "Play a trace on a disk"),
        ],
    ),
    (
        "Research",
        &[
            ("simulate", "Simulate one policy: what it would scrub, and what that costs"),
            ("compare", "Compare policies: idle time used against collisions"),
            ("explore", "Show every idle wait and busy period as heat maps"),
            ("sample", "Find the few intervals that stand for a trace"),
            ("reliability", "Estimate the mean time to data loss with scrubs and parity"),
            ("array", "Estimate how long an array keeps its data"),
        ],
    ),
];

/// Gives the command its help.
pub fn with_groups(command: Command) -> Command {
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let mut text = format!("{about}\n\nUsage: idlewise <COMMAND>\n");
    for (title, commands) in GROUPS {
        let _ = writeln!(text, "\n{title}:");
        for (name, about) in *commands {
            let _ = writeln!(text, "  {name:<13}{about}");
        }
    }
    let _ = write!(text, "\nOptions:\n  -h, --help     Print help\n  -V, --version  Print version\n");
    let _ = write!(
        text,
        "\n`idlewise COMMAND --help` explains a command and shows all of its options.\n\n{}\n",
        exit::HELP
    );
    command.override_help(text)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn every_subcommand_is_in_one_group_and_lines_are_short() {
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, commands)| commands.iter().map(|c| c.0)).collect();
        let command = crate::Arguments::command();
        let shown = command.get_subcommands().filter(|command| !command.is_hide_set());
        let mut known: Vec<&str> = shown.map(Command::get_name).collect();
        grouped.sort_unstable();
        known.sort_unstable();
        assert_eq!(grouped, known);
        let help = with_groups(command).render_help().to_string();
        assert!(help.lines().all(|line| line.chars().count() <= 80), "{help}");
    }
}
